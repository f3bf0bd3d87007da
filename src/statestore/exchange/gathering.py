"""Reading sessions for an export: which ones, and one at a time, a part at a time, as it was at one moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct

from statestore.copying.windows import WINDOW_BYTES, WINDOW_RECORDS, Pace, has_records, windows
from statestore.errors import CorruptData, InvalidName, SessionConflict, SessionNotFound
from statestore.exchange.sources import Source
from statestore.jsontext import check_object, members
from statestore.labels import labels_in, opening_of, title_of
from statestore.names import check_session_id
from statestore.records import latest_moment
from statestore.store.reading import understanding
from statestore.stored import StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

_TAIL: Final = 32
"""How many of a session's last records tell how large the others may be."""

Unreadable = CorruptData | SessionNotFound | InvalidName
LeaveOut = Callable[[str, Unreadable], None]
"""Goes on without a session, or raises."""


class Entry(Struct, frozen=True):
    """A session that will be exported, as a table of contents names it."""

    id: str
    title: str | None = None
    user_id: str = ""
    updated: str = ""


class Part(Struct, frozen=True):
    """A part of a session: what it is besides its records, its title, and the next of its records in order."""

    head: StoredSession
    title: str | None
    records: list[StoredRecord]


async def session_ids(source: Source) -> AsyncIterator[str]:
    """The ids of all sessions, in order, without holding them all."""
    async for page in source.pages():
        for summary in page:
            yield summary.id


async def entries(source: Source, ids: Iterable[str] | None, leave_out: LeaveOut) -> list[Entry]:
    """The named sessions in this order, or all of them, newest first."""
    if ids is None:
        return await _all_entries(source, leave_out)
    found: list[Entry] = []
    for session_id in ids:
        async with aclosing(session_parts(source, session_id)) as parts:
            try:
                part = await anext(parts)
            except (CorruptData, SessionNotFound) as error:
                leave_out(session_id, error)
                continue
        found.append(Entry(session_id, part.title, part.head.fields.user_id, part.head.fields.updated))
    return found


async def _all_entries(source: Source, leave_out: LeaveOut) -> list[Entry]:
    found: list[tuple[int, Entry]] = []
    async for page in source.pages():
        for each in page:
            try:
                with understanding(each.id):
                    age = nanoseconds(each.updated_text)
            except CorruptData as error:
                leave_out(each.id, error)
                continue
            found.append((age, Entry(each.id, each.title, each.user_id, each.updated_text)))
    return [entry for _, entry in sorted(found, key=lambda pair: pair[0], reverse=True)]


async def session_parts(source: Source, session_id: str) -> AsyncGenerator[Part]:
    """A session part by part, one part at least. All of it was read before the first one: no damage shows later.

    Whoever writes meanwhile: together the parts are the session as it was at the first one. If it was rewound or
    deleted before the last part was read, that state is gone: `SessionConflict` or `SessionNotFound` says so.
    """
    only = await _only_part(source, session_id)
    if only is not None:
        yield only
        return
    async with aclosing(_read_parts(source, session_id)) as parts:
        async for part in parts:
            yield part


async def _only_part(source: Source, session_id: str) -> Part | None:
    """Read a session to its end, and keep it if it is one part; a long one has to be read again."""
    only: Part | None = None
    count = 0
    async with aclosing(_read_parts(source, session_id)) as parts:
        async for part in parts:
            count += 1
            only = part if count == 1 else None
    return only


async def _read_parts(source: Source, session_id: str) -> AsyncGenerator[Part]:
    head = await source.read_session(check_session_id(session_id), last=_TAIL)
    if head is None:
        raise SessionNotFound(f"there is no session {session_id}")
    _check_header(head)
    tail = _understood(head)
    if len(tail) < _TAIL:
        yield Part(head, _title(head, tail), tail)
        return
    pace, title, last_read = _pace(head, tail), None, 0
    is_first = True
    async for window in windows(source, session_id, pace):
        if window.stored.fields.created != head.fields.created:
            break
        records = [record for record in _understood(window.stored) if record.seq < head.next_seq]
        if is_first:
            title = _title(window.stored, records)
        if records or is_first:
            last_read = records[-1].seq if records else last_read
            yield Part(head, title, records)
            is_first = False
        if window.before is not None and window.before >= head.next_seq:
            break
    # A rewind drops the last records, and numbers are never used twice: who has the last one has them all.
    if last_read != tail[-1].seq:
        if await source.read_session(session_id, last=0) is None:
            raise SessionNotFound(f"session {session_id} was deleted while it was being exported")
        raise SessionConflict(f"session {session_id} was rewound while it was being exported; try again")


def _check_header(stored: StoredSession) -> None:
    """Raise `CorruptSession` if what a session is besides its records cannot be understood."""
    with understanding(stored.id):
        nanoseconds(stored.fields.created)
        nanoseconds(stored.fields.updated)
        members(stored.metadata)
        if stored.layout is not None:
            check_object(stored.layout)


def _understood(stored: StoredSession) -> list[StoredRecord]:
    """The records of a part in order; `CorruptSession` if one of them is none."""
    with understanding(stored.id):
        latest_moment(*stored.records.decoded())
        return stored.records.in_order()


def _pace(head: StoredSession, tail: list[StoredRecord]) -> Pace:
    """All at once if the session is probably small; otherwise parts of about half a megabyte."""
    mean = max(1, sum(len(record.body) for record in tail) // len(tail))
    count = head.next_seq - 1
    if count <= WINDOW_RECORDS and count * mean <= WINDOW_BYTES:
        return Pace(None)
    return Pace(max(1, min(WINDOW_RECORDS, WINDOW_BYTES // mean)))


def _title(stored: StoredSession, records: list[StoredRecord]) -> str | None:
    """What a listing would call the session."""
    with understanding(stored.id):
        labels = labels_in(msgspec.json.decode(stored.metadata), ("title",))
        users = stored.records.decoded().users if has_records(stored) and records else []
    return title_of(labels | {"opening": opening_of(users[0].content) if users else None})
