"""`StateStoreSessions`: the Claude Agent SDK's contract for transcripts, on a statestore.

A transcript is a session: ``<session>:<project>``, in the project ``<project>``. The transcript of a subagent,
``<session>:<project>:<subpath>``, is a child of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, cast

from claude_agent_sdk import fold_session_summary
from claude_agent_sdk.types import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from statestore.adapters.access import Access, ClosesItsStore, Target, sessions_of
from statestore.adapters.claude_agent_sdk.summaries import Folded, Listed, Summaries
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.claude_agent_sdk import NAME, entry_in, legible, records_of
from statestore.adapters.identifiers import id_parts, is_shortened, joined_text, stored_name
from statestore.adapters.originals import metadata_of_shortened
from statestore.adapters.several import for_each
from statestore.errors import SessionConflict, SessionNotFound
from statestore.records import Record
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

_MAX_KEY_BYTES: Final = 400
_NO_KEY: Final = re.compile("[\\0#\ud800-\udfff]")
"""A ``uuid`` that is longer, or has one of these, is no key of ours; its hash is."""


class StateStoreSessions(ClosesItsStore, SessionStore):
    """A `SessionStore` of the SDK, with all of its optional methods.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and `close` closes it. With a ``user_id`` the sessions are that user's, and nobody else's are
    ever touched. ``metadata`` is what a new session gets.
    """

    def __init__(self, store: Target, *, user_id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        self._access = Access(store, opens="async")
        self._user_id = user_id
        self._metadata = dict(metadata or {})
        self._summaries = Summaries(self._access, user_id)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries, all in one commit. An entry whose ``uuid`` the session knows already is not stored twice."""
        place = self._conversation(key)
        records: list[Record] = []
        keys: list[str | None] = []
        for entry in entries:
            told = records_of(entry)
            records += told
            keys += _keys_of(entry, len(told))
        if not records:
            return
        title = None if key.get("subpath") else _title_in(entries)

        async def add(store: AsyncStateStore) -> None:
            sessions = place.sessions(store)
            for _ in range(MAX_ATTEMPTS):
                with suppress(SessionNotFound):
                    if title is not None:  # first: if it fails, the batch can be sent again
                        await sessions.update_session_with(
                            place.id, lambda one: one.set_metadata("title", title), last=0
                        )
                    await sessions.append(place.id, *records, keys=keys)
                    return
                with suppress(SessionConflict):  # somebody was faster: theirs is the session
                    await sessions.save_session(self._born(place, key))
            raise SessionConflict(f"session {place.id} was made and deleted {MAX_ATTEMPTS} times meanwhile")

        await self._access.run(add)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries of a transcript, exactly as they were added; ``None`` if there are none."""
        place = self._conversation(key)
        entries = await self._access.run(place.items)
        return [entry_in(item) for item in entries] or None

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, without those of subagents, newest first."""

        async def find(store: AsyncStateStore) -> list[SessionStoreListEntry]:
            found = await self._listed(store, project_key)
            return [{"session_id": name, "mtime": _milliseconds(summary)} for name, summary in found]

        return await self._access.run(find)

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """What the SDK shows of each session of a project. Only what was added since the last time is read."""
        found = await self._access.run(lambda store: self._listed(store, project_key))
        told = await self._summaries.of([Listed(summary, _fold_of(project_key, name)) for name, summary in found])
        return [
            {"session_id": name, "mtime": _milliseconds(summary), "data": data}
            for (name, summary), data in zip(found, told, strict=True)
        ]

    async def delete(self, key: SessionKey) -> None:
        """Remove a transcript; with a session's own, those of its subagents."""
        place = self._conversation(key)

        async def remove(store: AsyncStateStore) -> None:
            sessions = place.sessions(store)
            while not key.get("subpath") and (
                children := await sessions.list_sessions(parent_session_id=str(place.id))
            ):
                await for_each(store, children, lambda child: sessions.delete_session(child.id))
            await sessions.delete_session(place.id)

        await self._access.run(remove)

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths under a session: the transcripts of its subagents."""
        place = self._conversation({"project_key": key["project_key"], "session_id": key["session_id"]})

        async def find(store: AsyncStateStore) -> list[str]:
            children = await place.sessions(store).list_sessions(parent_session_id=str(place.id), order="id")
            parts = await self._parts_of(store, children)
            return [part[2] for part in parts if part[:2] == (key["session_id"], key["project_key"]) and len(part) == 3]

        return await self._access.run(find)

    def _conversation(self, key: SessionKey) -> Conversation:
        subpath = key.get("subpath")
        parts = (key["session_id"], key["project_key"], *((subpath,) if subpath else ()))
        return Conversation.of(NAME, joined_text(*parts), user_id=self._user_id, metadata=self._metadata)

    def _born(self, place: Conversation, key: SessionKey) -> Session:
        """A new session for a transcript: in its project, and a subagent's below the one that started it."""
        session = place.born()
        session.project_id = _project_id(key["project_key"])
        if key.get("subpath"):
            main = self._conversation({"project_key": key["project_key"], "session_id": key["session_id"]})
            session.parent_session_id = str(main.id)
        return session

    async def _listed(self, store: AsyncStateStore, project_key: str) -> list[tuple[str, SessionSummary]]:
        """The transcripts of a project, each with the session id that the SDK knows it by."""
        sessions = sessions_of(store, self._user_id)
        listed = await sessions.list_sessions(project_id=_project_id(project_key), top_level=True)
        parts = await self._parts_of(store, listed)
        return [
            (part[0], summary)
            for part, summary in zip(parts, listed, strict=True)
            if len(part) == 2 and part[1] == project_key
        ]

    async def _parts_of(self, store: AsyncStateStore, listed: Sequence[SessionSummary]) -> list[tuple[str, ...]]:
        """What the ids of listed sessions were joined from; nothing for one that is gone by now."""
        metadata = await metadata_of_shortened(store, self._user_id, listed)
        return [
            () if is_shortened(one.id) and one.id not in metadata else id_parts(one.id, metadata.get(one.id))
            for one in listed
        ]


def _project_id(project_key: str) -> str:
    return stored_name(project_key)


def _milliseconds(summary: SessionSummary) -> int:
    return nanoseconds(summary.updated_text) // 1_000_000


def _keys_of(entry: Any, count: int) -> list[str | None]:
    """The idempotency keys for the records of an entry."""
    uuid = cast("Mapping[str, Any]", entry).get("uuid")
    if not isinstance(uuid, str) or not uuid:
        return [None] * count
    if _NO_KEY.search(uuid) or len(uuid.encode()) > _MAX_KEY_BYTES:
        uuid = sha256(uuid.encode("utf-8", "surrogatepass")).hexdigest()
    return [uuid, *(f"{uuid}#{number}" for number in range(1, count))]


def _title_in(entries: Sequence[SessionStoreEntry]) -> str | None:
    """The last title that somebody gave the session, if these entries give one."""
    titles = (cast("Mapping[str, Any]", entry).get("customTitle") for entry in reversed(entries))
    return next((legible(title) for title in titles if isinstance(title, str) and title), None)


def _fold_of(project_key: str, session_id: str) -> Folded:
    """How the SDK makes a summary go on with more entries."""
    key: SessionKey = {"project_key": project_key, "session_id": session_id}

    def fold(data: dict[str, Any] | None, entries: list[Any]) -> dict[str, Any]:
        known: SessionSummaryEntry | None = (
            None if data is None else {"session_id": session_id, "mtime": 0, "data": data}
        )
        return fold_session_summary(known, key, entries)["data"]

    return fold
