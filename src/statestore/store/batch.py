"""`Batch`: several writes that happen together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct

from statestore.engine import Change, ChangeSession, DeleteSession, Outcome
from statestore.errors import StoreClosed
from statestore.host import step
from statestore.names import check_session_id
from statestore.records import Record
from statestore.session import Session, ledger_of
from statestore.store import documents
from statestore.store.appending import appending, joined
from statestore.store.saving import Draft
from statestore.stored import DocumentKind


class Collected(Struct):
    """What a batch is to write."""

    changes: list[Change] = []
    appends: dict[str, list[ChangeSession]] = {}
    """By session: a batch may name each only once."""
    sessions: list[Session] = []
    is_over: bool = False
    """Whether it was written, or its block has ended."""

    def check_is_open(self) -> None:
        """Refuse a batch that is over."""
        if self.is_over:
            raise StoreClosed("this batch is over: begin another one with store.batch()")


class Batch:
    """Collects writes; they are made, all or none, when the ``with`` block ends without an error.

    Nothing is written before that, and nothing is read: the methods are plain in both faces of the store.
    """

    def __init__(self, content: Collected) -> None:
        self._content = content

    def save_markdown(self, category: str, name: str, content: str, *, if_version: str | None = None) -> None:
        """Store a text."""
        self._collect(documents.put_markdown(category, name, content, if_version))

    def save_json(self, category: str, name: str, data: Any, *, if_version: str | None = None) -> None:
        """Store a value as JSON."""
        self._collect(documents.put_json(category, name, data, if_version))

    def save_bytes(self, category: str, name: str, data: bytes, *, if_version: str | None = None) -> None:
        """Store bytes."""
        self._collect(documents.put_bytes(category, name, data, if_version))

    def delete_file(self, category: str, name: str, *, kind: DocumentKind) -> None:
        """Remove a document."""
        self._collect(documents.delete_document(category, name, documents.kinds(kind)[0]))

    def delete_category(self, category: str) -> None:
        """Remove all documents of a category."""
        self._collect(documents.delete_category(category))

    def save_session(self, session: Session) -> None:
        """Store what will have changed in a session by the end of the block."""
        self._content.check_is_open()
        if session not in self._content.sessions:
            self._content.sessions.append(session)

    def append(self, session_id: str, *records: Record, keys: Sequence[str | None] | None = None) -> None:
        """Add records to a session without loading it; with idempotency keys, one for each record."""
        self._content.check_is_open()
        change = appending(session_id, records, keys)
        if records:
            self._content.appends.setdefault(change.id, []).append(change)

    def delete_session(self, session_id: str) -> None:
        """Remove a session."""
        self._collect(DeleteSession(check_session_id(session_id)))

    def _collect(self, change: Change) -> None:
        self._content.check_is_open()
        self._content.changes.append(change)


class Drafted:
    """A batch ready to be sent: its changes, and those of its sessions as they are now."""

    def __init__(self, content: Collected) -> None:
        drafts = [(session, Draft(session)) for session in content.sessions]
        self._drafts = [(session, draft) for session, draft in drafts if draft.change is not None]
        self._first = len(content.changes) + len(content.appends)
        self.changes: list[Change] = [
            *content.changes,
            *map(joined, content.appends.values()),
            *(draft.change for _, draft in self._drafts if draft.change is not None),
        ]

    def note_stored(self, outcomes: list[Outcome], place: str) -> None:
        """The batch happened in the store at this place: let the sessions know."""
        for (_, draft), outcome in zip(self._drafts, outcomes[self._first :], strict=True):
            draft.note_stored(outcome, place)

    def note_unsure(self) -> None:
        """Nobody knows whether the batch happened."""
        for session, draft in self._drafts:
            ledger_of(session).unsure = draft


class AsyncBatchBlock:
    """``async with store.batch() as batch:``"""

    def __init__(self, commit: Callable[[Collected], Coroutine[Any, Any, None]]) -> None:
        self._commit = commit
        self._content = Collected()

    async def __aenter__(self) -> Batch:
        return Batch(self._content)

    async def __aexit__(self, kind: object = None, *_: object) -> None:
        try:
            if kind is None:
                await self._commit(self._content)
        finally:
            self._content.is_over = True


class BatchBlock:
    """``with store.batch() as batch:``"""

    def __init__(self, block: AsyncBatchBlock) -> None:
        self._block = block

    def __enter__(self) -> Batch:
        return step(self._block.__aenter__())

    def __exit__(self, *error: object) -> None:
        step(self._block.__aexit__(*error))
