"""Reading ahead: small sessions are read once and whole, several of them in one call where an engine can.

A server that is asked for each item by itself costs a round trip each, and a comparison asks several times. Who asks
need not know: what is long, damaged or gone is read from the engine, part by part, as it is asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Final, cast

import msgspec

from statestore.copying.windows import Pace
from statestore.engine import Engine, ReadsSeveral
from statestore.errors import CorruptData
from statestore.store.chunks import chunks
from statestore.stored import Document, DocumentInfo, DocumentKind, Records, SessionSummary, StoredRecord, StoredSession

MOST_ITEMS: Final = 100
MOST_BYTES: Final = 1 << 19
"""How much is fetched together, going by what a listing tells; a single item may be more."""


class ReadAhead:
    """The sessions and documents of an engine, of which the next ones are at hand perhaps."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._several = cast("ReadsSeveral", engine) if hasattr(engine, "read_sessions") else None
        self._small: set[str] = set()
        self._sessions: dict[str, StoredSession] = {}
        self._documents: dict[tuple[str, str, DocumentKind], Document] = {}

    def expect(self, summaries: Iterable[SessionSummary]) -> None:
        """Tell what the engine's listing says of the sessions that come next: which ones need not be read in parts."""
        self._small = {summary.id for summary in summaries if Pace.for_session(summary).width is None}

    async def fetch_sessions(self, ids: Iterable[str]) -> None:
        """Have the small ones of these sessions at hand, and no others."""
        self._sessions = {}
        wanted = [session_id for session_id in ids if session_id in self._small]
        if self._several is not None and len(wanted) > 1:
            with suppress(CorruptData):  # which one it is, each tells when it is read by itself
                self._sessions = {stored.id: stored for stored in await self._several.read_sessions(wanted)}

    async def fetch_documents(self, infos: Sequence[DocumentInfo]) -> None:
        """Have these documents at hand, which are of one category, and no others."""
        self._documents = {}
        if self._several is not None and len(infos) > 1:
            places: list[tuple[str, DocumentKind]] = [(info.name, info.kind) for info in infos]
            with suppress(CorruptData):
                found = await self._several.get_documents(infos[0].category, places)
                self._documents = {(each.category, each.name, each.kind): each for each in found}

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """One session, with the records that are asked for."""
        if session_id in self._small:
            try:
                whole = self._sessions.get(session_id) or await self.engine.read_session(session_id)
                if whole is None:
                    return None
                self._sessions[session_id] = whole
                return _part_of(whole, after, before, last)
            except (CorruptData, msgspec.DecodeError, ValueError, RecursionError):
                self._small.discard(session_id)  # but perhaps it is not this part that is damaged
        return await self.engine.read_session(session_id, after=after, before=before, last=last)

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        """One document."""
        return self._documents.get((category, name, kind)) or await self.engine.get_document(category, name, kind)


async def sessions_ahead(
    page: Sequence[SessionSummary], *stores: tuple[ReadAhead, Iterable[SessionSummary]]
) -> AsyncIterator[SessionSummary]:
    """The sessions of a page, each when it is at hand from some stores, which list these themselves."""
    for store, summaries in stores:
        store.expect(summaries)
    for group in chunks(page, MOST_ITEMS, MOST_BYTES):
        for store, _ in stores:
            await store.fetch_sessions(summary.id for summary in group)
        for summary in group:
            yield summary


async def documents_ahead(page: Sequence[DocumentInfo], *stores: ReadAhead) -> AsyncIterator[DocumentInfo]:
    """The documents of a page, each when it is at hand from some stores."""
    for group in chunks(page, MOST_ITEMS, MOST_BYTES):
        for store in stores:
            await store.fetch_documents(group)
        for info in group:
            yield info


def _part_of(stored: StoredSession, after: int | None, before: int | None, last: int | None) -> StoredSession:
    """A session with the records numbered above ``after`` and below ``before``, of these the ``last`` ones."""
    if last is None and before is None and not after:  # numbers begin with 1
        return stored
    records: list[StoredRecord] = []
    if last != 0:
        low, high = after or 0, stored.next_seq if before is None else before
        records = [record for record in stored.records.in_order() if low < record.seq < high][-(last or 0) :]
    return msgspec.structs.replace(stored, records=Records.of(records))
