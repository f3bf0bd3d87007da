"""`Batch`: several writes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from statestore.engine import Change, DeleteSession, Outcome
from statestore.names import check_session_id
from statestore.session import Session
from statestore.store import documents
from statestore.store.saving import Draft
from statestore.stored import DocumentKind


class Batch:
    """Collects writes; they are made, all or none, when the ``with`` block ends without an error.

    Nothing is written before that, and nothing is read: the methods are plain in both faces of the store.
    """

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.drafts: dict[int, tuple[Session, Draft]] = {}
        self.sessions: list[Session] = []

    def save_markdown(self, category: str, name: str, content: str, *, if_version: str | None = None) -> None:
        """Store a text."""
        self.changes.append(documents.put_markdown(category, name, content, if_version))

    def save_json(self, category: str, name: str, data: Any, *, if_version: str | None = None) -> None:
        """Store a value as JSON."""
        self.changes.append(documents.put_json(category, name, data, if_version))

    def save_bytes(self, category: str, name: str, data: bytes, *, if_version: str | None = None) -> None:
        """Store bytes."""
        self.changes.append(documents.put_bytes(category, name, data, if_version))

    def delete_file(self, category: str, name: str, *, kind: DocumentKind) -> None:
        """Remove a document."""
        self.changes.append(documents.delete_document(category, name, documents.kinds(kind)[0]))

    def delete_category(self, category: str) -> None:
        """Remove all documents of a category."""
        self.changes.append(documents.delete_category(category))

    def save_session(self, session: Session) -> None:
        """Store what will have changed in a session by the end of the block."""
        if session not in self.sessions:
            self.sessions.append(session)

    def delete_session(self, session_id: str) -> None:
        """Remove a session."""
        self.changes.append(DeleteSession(check_session_id(session_id)))

    def draft_sessions(self) -> None:
        """Add what changed in the sessions to the changes."""
        for session in self.sessions:
            draft = Draft(session)
            if draft.change is not None:
                self.drafts[len(self.changes)] = (session, draft)
                self.changes.append(draft.change)

    def note_stored(self, outcomes: list[Outcome]) -> None:
        """The batch happened: let the sessions know."""
        for index, (_, draft) in self.drafts.items():
            draft.note_stored(outcomes[index])

    def note_unsure(self) -> None:
        """Nobody knows whether the batch happened."""
        for session, draft in self.drafts.values():
            session.unsure = draft


class AsyncBatchBlock:
    """``async with store.batch() as batch:``"""

    def __init__(self, commit: Callable[[Batch], Coroutine[Any, Any, None]]) -> None:
        self._commit = commit
        self._batch = Batch()

    async def __aenter__(self) -> Batch:
        return self._batch

    async def __aexit__(self, kind: object, *_: object) -> None:
        if kind is None:
            await self._commit(self._batch)


class BatchBlock:
    """``with store.batch() as batch:``"""

    def __init__(self, commit: Callable[[Batch], None]) -> None:
        self._commit = commit
        self._batch = Batch()

    def __enter__(self) -> Batch:
        return self._batch

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._commit(self._batch)
