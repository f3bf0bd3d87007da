"""What the Claude Agent SDK shows of sessions, kept so that a listing reads only what is new.

A session's summary lies in its own metadata, with the number of the record it reaches to, and goes with the session:
nothing that a user said is kept elsewhere. Listings write it, so adding to a session costs nothing more, and two
processes that add to one session cannot spoil its summary; one that does not fit what is stored is made anew. What an
adapter has listed before is not even read again, as long as the session's version is the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from statestore.adapters.access import Access, sessions_of
from statestore.adapters.committing import committed
from statestore.adapters.dialects.claude_agent_sdk import NAME, entry_in
from statestore.adapters.items import Carrier, carrier_of
from statestore.adapters.several import for_each
from statestore.engine import ChangeSession, Requires
from statestore.errors import InvalidValue, ReadOnlyStore, SessionNotFound
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.sessions import AsyncSessions
from statestore.stored import SessionSummary, StoredSession

Folded = Callable[[dict[str, Any] | None, list[Any]], dict[str, Any]]
"""Makes a summary, or none, go on with more entries."""
SUMMARY: Final = f"{NAME}:summary"
"""The metadata key of a session's summary."""
_KEPT: Final = 20_000
"""Of how many sessions the summary is kept in mind."""
_PAGE: Final = 64
"""How many summaries are kept by one commit."""


class Listed(Struct, frozen=True):
    """A session of a listing, and how its summary is made."""

    summary: SessionSummary
    fold: Folded

    @property
    def record_count(self) -> int:
        """How many records the session had when it was listed."""
        return self.summary.message_count + self.summary.response_count + self.summary.event_count


class _Kept(Struct, frozen=True, array_like=True):
    """A summary as it lies in a session's metadata."""

    created: str = ""
    """When the session was made: a fork of it has a time of its own."""
    next_seq: int = 1
    """The number that the next record will get: nothing was added if it is still the next."""
    count: int = 0
    """How many records there were before that number: fewer or others now, and history was rewritten."""
    data: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class _Held(Struct):
    summary: Any = msgspec.field(default=None, name=SUMMARY)


class _Known(Struct, frozen=True):
    version: str
    data: dict[str, Any]


class _Told(Struct, frozen=True):
    """The summary of a session, and what keeps it in there, if it is new and can be kept."""

    data: dict[str, Any]
    version: str | None = None
    """The version it belongs to; ``None`` if somebody is writing right now."""
    change: ChangeSession | None = None


class Summaries:
    """The summaries of one adapter's sessions."""

    def __init__(self, access: Access, user_id: str | None) -> None:
        self._access = access
        self._user_id = user_id
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def of(self, sessions: Sequence[Listed]) -> list[dict[str, Any]]:
        """The summaries of some sessions: as they were, going on with what was added since."""
        known = [(one.summary, self._known.get(one.summary.id)) for one in sessions]
        data = {
            summary.id: found.data for summary, found in known if found is not None and found.version == summary.version
        }
        unknown = [one for one in sessions if one.summary.id not in data]
        for start in range(0, len(unknown), _PAGE):
            data |= await self._looked_up(unknown[start : start + _PAGE])
        return [dict(data[one.summary.id]) for one in sessions]

    async def _looked_up(self, sessions: Sequence[Listed]) -> dict[str, dict[str, Any]]:
        """The summaries of sessions that are not known, or changed: kept in them, and in mind."""
        found = await self._access.run(lambda store: for_each(store, sessions, lambda one: self._told(store, one)))
        told = {one.summary.id: summary for one, summary in zip(sessions, found, strict=True)}
        changes = [one.change for one in found if one.change is not None]
        versions = await self._access.run(lambda store: _commit(store, changes)) if changes else {}
        for session_id, summary in told.items():
            version = versions.get(session_id, summary.version)
            if version is not None:
                self._known.pop(session_id, None)
                self._known[session_id] = _Known(version, summary.data)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return {session_id: summary.data for session_id, summary in told.items()}

    async def _told(self, store: AsyncStateStore, listed: Listed) -> _Told:
        sessions = sessions_of(store, self._user_id)
        stored = await engine_of(store).read_session(listed.summary.id, last=0)
        if stored is None or str(stored.version) != listed.summary.version:
            return _Told(listed.fold(None, await _entries_of(sessions, listed.summary.id)))
        kept = _kept_in(stored)
        if (kept.next_seq, kept.count) == (stored.next_seq, listed.record_count):
            return _Told(kept.data, listed.summary.version)
        data = await _grown(sessions, listed, kept)
        if data is None and kept.count:
            data = await _grown(sessions, listed, _Kept())
        if data is None:
            return _Told(listed.fold(None, await _entries_of(sessions, listed.summary.id)))
        new = _Kept(stored.fields.created, stored.next_seq, listed.record_count, data)
        return _Told(data, listed.summary.version, _keeping(stored, new))


def _kept_in(stored: StoredSession) -> _Kept:
    """The summary in a session's metadata; an empty one if there is none that can be read, or it is another's."""
    try:
        kept = msgspec.convert(msgspec.json.decode(stored.metadata, type=_Held).summary, _Kept)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Kept()
    return kept if kept.created == stored.fields.created else _Kept()


async def _grown(sessions: AsyncSessions, listed: Listed, kept: _Kept) -> dict[str, Any] | None:
    """What was kept, going on with what was added; ``None`` if that does not give the session that was listed."""
    try:
        found = await sessions.timeline_as(listed.summary.id, carrier_of(NAME), after=kept.next_seq - 1)
    except SessionNotFound:
        return None
    if kept.count + len(found) != listed.record_count:
        return None
    return listed.fold(kept.data if kept.count else None, _entries_in(found))


def _keeping(stored: StoredSession, kept: _Kept) -> ChangeSession | None:
    """What keeps a summary in its session, whose time of change stays: nothing was said.

    ``None`` if the summary is no JSON: it may hold half of a character of its entries.
    """
    try:
        text = json_text(kept, "a summary")
    except InvalidValue:
        return None
    return ChangeSession(
        id=stored.id,
        updated=stored.fields.updated,
        requires=Requires(present=True, version=stored.version),
        set_metadata={SUMMARY: text},
    )


async def _commit(store: AsyncStateStore, changes: Sequence[ChangeSession]) -> dict[str, str]:
    """Keep summaries, together where that can be; the versions that their sessions have then.

    Whoever was faster is left alone: the next listing goes on from what is there.
    """
    try:
        together = await committed(store, changes) if engine_of(store).atomic_scope == "store" else None
        if together is None:
            made = await for_each(store, changes, lambda change: committed(store, [change]))
        else:
            made = [[outcome] for outcome in together]
    except ReadOnlyStore:
        return {}
    outcomes = zip(changes, made, strict=True)
    return {change.id: str(outcome[0].version) for change, outcome in outcomes if outcome is not None}


async def _entries_of(sessions: AsyncSessions, session_id: str) -> list[Any]:
    try:
        found = await sessions.timeline_as(session_id, carrier_of(NAME))
    except SessionNotFound:
        return []
    return _entries_in(found)


def _entries_in(found: Sequence[tuple[int, Carrier]]) -> list[Any]:
    return [entry_in(carrier.item) for _, carrier in found if not carrier.is_foreign and not carrier.is_aside]
