"""In which session an entry lies. Entries have ids of their own, which do not tell.

Whoever reads a conversation or writes one learns it, and keeps it in mind. An entry that nobody asked for yet is looked
for in all sessions that may hold it: those that were changed since the entry's id was made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from statestore.adapters.pydantic_ai.entries import entries_in
from statestore.adapters.several import for_each
from statestore.errors import CorruptData
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of

_KEPT: Final = 100_000
_PAGE: Final = 200
_UUID7: Final = 7
_SKEW: Final = timedelta(hours=1)
"""How much clocks may differ."""


class Finder:
    """Knows where entries are."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, str] = OrderedDict()

    def learn(self, entry_ids: Iterable[str], session_id: str) -> None:
        """Keep in mind that these entries lie in a session."""
        for entry_id in entry_ids:
            self._places[entry_id] = session_id
        while len(self._places) > _KEPT:
            self._places.popitem(last=False)

    def forget(self, session_id: str) -> None:
        """A session is gone, and its entries with it."""
        for entry_id in [entry for entry, place in self._places.items() if place == session_id]:
            del self._places[entry_id]

    async def found(self, store: AsyncStateStore, entry_id: str) -> str | None:
        """The session that an entry lies in; ``None`` if there is no such entry."""
        known = self._places.get(entry_id)
        if known is not None:
            return known
        cursor = None
        while True:
            page = await store.list_sessions(updated_since=_made(entry_id), limit=_PAGE, after=cursor)
            found = await self._found_in(store, [summary.id for summary in page], entry_id)
            if found is not None or len(page) < _PAGE:
                return found
            cursor = page[-1].cursor

    async def _found_in(self, store: AsyncStateStore, session_ids: Sequence[str], entry_id: str) -> str | None:
        """The first of some sessions that an entry lies in. Once it is found, no more are looked at."""
        found: dict[str, Iterable[str]] = {}

        async def look(session_id: str) -> None:
            stored = None if found else await engine_of(store).read_session(session_id)
            if stored is not None and entry_id in stored.records.numbering.keys.values():
                entries = await entries_in(store, stored)
                if entry_id in entries:
                    found[session_id] = entries

        try:
            await for_each(store, session_ids, look)
        except CorruptData:
            if not found:
                raise
        place = next((session_id for session_id in session_ids if session_id in found), None)
        if place is not None:
            self.learn(found[place], place)
        return place


def _made(entry_id: str) -> datetime | None:
    """When an entry's id was made, if it tells: a UUID of version 7 begins with the milliseconds since 1970."""
    try:
        uuid = UUID(entry_id)
    except ValueError:
        return None
    if uuid.version != _UUID7:
        return None
    return datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC) - _SKEW
