"""What the Claude Agent SDK shows of the sessions of a project, kept so that a listing reads only what is new.

One document for each project remembers every session's summary, and which record it reaches to. It is a cache: without
it, or if it does not fit what is stored, summaries are made from the sessions themselves. So adding to a session costs
nothing more, and two processes that add to one session cannot spoil its summary.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from statestore.adapters.claude_agent_sdk_items import NAME, entry_in
from statestore.adapters.identifiers import joined_text, stored_category, stored_name
from statestore.adapters.items import Carrier, carrier_of
from statestore.errors import CorruptDocument, DocumentConflict, InvalidValue, ReadOnlyStore, SessionNotFound
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.sessions import AsyncSessions
from statestore.stored import SessionSummary

Folded = Callable[[dict[str, Any] | None, list[Any]], dict[str, Any]]
"""Makes a summary, or none, go on with more entries."""
_CATEGORY: Final = stored_category(NAME, "summaries")
_LAYOUT: Final = 2


class Kept(Struct, array_like=True):
    """What is remembered of one session."""

    created: str
    """When the session was made: another one may have its id by now."""
    version: str
    """The version of the session that was read; nothing has happened to it since if it is still at it."""
    last_seq: int
    count: int
    """How many records there were up to that number: fewer or others now, and history was rewritten."""
    data: dict[str, Any]


class _Page(Struct):
    layout: int
    sessions: dict[str, Kept]


class SummaryCache:
    """The remembered summaries of a project. `read` makes one."""

    def __init__(self, name: str, version: str, kept: dict[str, Kept]) -> None:
        self._name = name
        self._version = version
        self._kept = kept
        self._is_changed = False

    @classmethod
    async def read(cls, store: AsyncStateStore, project_key: str, user_id: str | None) -> SummaryCache:
        """What was remembered: of everybody's sessions, or of one user's."""
        name = stored_name(joined_text(project_key, *(() if user_id is None else (user_id,))))
        document = await store.get_document(_CATEGORY, name, kind="json")
        if document is None:
            return cls(name, "", {})
        try:
            page: _Page = document.decoded(_Page)
        except (CorruptDocument, InvalidValue):  # it is made anew
            return cls(name, document.version, {})
        return cls(name, document.version, page.sessions if page.layout == _LAYOUT else {})

    async def data_of(self, sessions: AsyncSessions, summary: SessionSummary, fold: Folded) -> dict[str, Any]:
        """The summary of a session: as remembered, going on with what was added since."""
        known = self._kept.get(summary.id)
        if known is not None and known.version == summary.version:
            return known.data
        new = None
        if known is not None and known.created == summary.created_text:
            new = await self._grown(sessions, summary, fold, known)
        if new is None:
            new = await self._grown(sessions, summary, fold, Kept(summary.created_text, "", 0, 0, {}))
        if new is None:  # somebody is writing right now: told, and not remembered
            return fold(None, await _entries_of(sessions, summary.id))
        if _is_storable(new.data):
            self._kept[summary.id], self._is_changed = new, True
        return new.data

    async def _grown(self, sessions: AsyncSessions, summary: SessionSummary, fold: Folded, known: Kept) -> Kept | None:
        """What is to be remembered now; ``None`` if the session is not the remembered one with more added to it."""
        try:
            found = await sessions.timeline_as(summary.id, carrier_of(NAME), after=known.last_seq)
        except SessionNotFound:
            return None
        count = known.count + len(found)
        if count != summary.message_count + summary.response_count + summary.event_count:
            return None
        data = fold(known.data if known.count else None, _entries_in(found))
        return Kept(summary.created_text, summary.version, found[-1][0] if found else known.last_seq, count, data)

    async def write(self, store: AsyncStateStore, session_ids: Collection[str]) -> None:
        """Remember the summaries of these sessions, if there is anything new; whoever was faster is left alone."""
        kept = {session_id: self._kept[session_id] for session_id in session_ids if session_id in self._kept}
        if self._is_changed or len(kept) < len(self._kept):
            with suppress(DocumentConflict, ReadOnlyStore):
                await store.save_json(_CATEGORY, self._name, _Page(_LAYOUT, kept), if_version=self._version)


async def _entries_of(sessions: AsyncSessions, session_id: str) -> list[Any]:
    try:
        found = await sessions.timeline_as(session_id, carrier_of(NAME))
    except SessionNotFound:
        return []
    return _entries_in(found)


def _entries_in(found: Sequence[tuple[int, Carrier]]) -> list[Any]:
    return [entry_in(carrier.item) for _, carrier in found if not carrier.is_foreign and not carrier.is_aside]


def _is_storable(data: dict[str, Any]) -> bool:
    """Whether a summary is JSON that a store can keep: it may hold half of a character of its entries."""
    try:
        json_text(data, "a summary")
    except InvalidValue:
        return False
    return True
