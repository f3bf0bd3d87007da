"""Reading a session a part at a time, so that a long one does not have to fit into memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, NamedTuple, Protocol

from statestore.stored import SessionSummary, StoredRecord, StoredSession

WINDOW_RECORDS: Final = 2000
WINDOW_BYTES: Final = 1 << 19


class ReadsSessions(Protocol):
    """Whatever a session can be read from: an engine, or what was fetched from it."""

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """As of `Engine.read_session`."""
        ...


class Window(NamedTuple):
    """A part of a session: the records that follow those of the part before it, up to a number."""

    stored: StoredSession
    before: int | None = None
    """All records of the part are numbered below it; ``None`` if all the rest was read at once."""


class Pace(NamedTuple):
    """How much of a session is read at once: all of it, or so many numbers."""

    width: int | None

    @classmethod
    def for_session(cls, summary: SessionSummary) -> Pace:
        """Small sessions whole, others so that a part of them has about `WINDOW_BYTES`."""
        count = summary.message_count + summary.response_count + summary.event_count
        if summary.size <= WINDOW_BYTES and count <= WINDOW_RECORDS:
            return cls(None)
        return cls(max(1, min(WINDOW_RECORDS, WINDOW_BYTES * count // max(summary.size, 1))))


async def windows(engine: ReadsSessions, session_id: str, pace: Pace, *, after: int = 0) -> AsyncIterator[Window]:
    """A session's records above a number, part by part; one part at least, if there is such a session."""
    if pace.width is None:
        stored = await engine.read_session(session_id, after=after or None)
        if stored is not None:
            yield Window(stored)
        return
    while True:
        before = after + pace.width + 1
        stored = await engine.read_session(session_id, after=after, before=before)
        if stored is None:
            return
        yield Window(stored, before)
        after = before - 1
        if after < stored.next_seq - 1 and not has_records(stored):
            after = await _end_of_gap(engine, session_id, after, pace.width, stored.next_seq)
        if after >= stored.next_seq - 1:
            return


async def last_record(engine: ReadsSessions, session_id: str, *, before: int | None = None) -> StoredRecord | None:
    """The last record of a session, or the last one below a number."""
    stored = await engine.read_session(session_id, before=before, last=1)
    records = stored.records.in_order() if stored is not None else []
    return records[-1] if records else None


def has_records(stored: StoredSession) -> bool:
    """Whether this part of a session has any records."""
    numbers = stored.records.numbering
    return bool(len(numbers.users) or len(numbers.agents) or len(numbers.events))


async def _end_of_gap(engine: ReadsSessions, session_id: str, after: int, width: int, next_seq: int) -> int:
    """The number right below the first record above another: numbers may be far apart."""
    while not await _has_any(engine, session_id, after, width):
        after += width
        width *= 2
        if after >= next_seq - 1:
            return after
    while width > 1:  # there is one in the next ``width`` numbers
        half = width // 2
        if await _has_any(engine, session_id, after, half):
            width = half
        else:
            after += half
            width -= half
    return after


async def _has_any(engine: ReadsSessions, session_id: str, after: int, width: int) -> bool:
    stored = await engine.read_session(session_id, after=after, before=after + width + 1, last=1)
    return stored is not None and has_records(stored)
