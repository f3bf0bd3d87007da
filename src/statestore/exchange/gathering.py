"""Reading sessions for an export: which ones, and one at a time, a part at a time, as it was at one moment."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Final

import msgspec
from msgspec import Struct

from statestore.copying.walking import session_pages
from statestore.copying.windows import WINDOW_BYTES, WINDOW_RECORDS, Pace, has_records, windows
from statestore.engine import Engine
from statestore.errors import SessionConflict, SessionNotFound
from statestore.labels import labels_in, opening_of, title_of
from statestore.names import check_session_id
from statestore.store.reading import understanding
from statestore.stored import StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

_TAIL: Final = 32
"""How many of a session's last records tell how large the others may be."""


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


async def session_ids(engine: Engine) -> AsyncIterator[str]:
    """The ids of all sessions, in order, without holding them all."""
    async for page in session_pages(engine):
        for summary in page:
            yield summary.id


async def entries(engine: Engine, ids: Iterable[str] | None) -> list[Entry]:
    """The named sessions in this order, or all of them, newest first."""
    found: list[Entry] = []
    if ids is None:
        async for page in session_pages(engine):
            found += [Entry(each.id, each.title, each.user_id, each.updated_text) for each in page]
        return sorted(found, key=lambda entry: nanoseconds(entry.updated), reverse=True)
    for session_id in ids:
        async with aclosing(session_parts(engine, session_id)) as parts:
            part = await anext(parts)
        found.append(Entry(session_id, part.title, part.head.fields.user_id, part.head.fields.updated))
    return found


async def session_parts(engine: Engine, session_id: str) -> AsyncGenerator[Part]:
    """A session part by part, one part at least.

    Whoever writes meanwhile: together the parts are the session as it was at the first one. If it was rewound or
    deleted before the last part was read, that state is gone, and `SessionConflict` says so.
    """
    head = await engine.read_session(check_session_id(session_id), last=_TAIL)
    if head is None:
        raise SessionNotFound(f"there is no session {session_id}")
    with understanding(session_id):
        tail = head.records.in_order()
    if len(tail) < _TAIL:
        yield Part(head, _title(head, tail), tail)
        return
    pace, title, last_read = _pace(head, tail), None, 0
    is_first = True
    async for window in windows(engine, session_id, pace):
        if window.stored.fields.created != head.fields.created:
            break
        with understanding(session_id):
            records = [record for record in window.stored.records.in_order() if record.seq < head.next_seq]
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
        raise SessionConflict(f"session {session_id} was rewound or deleted while it was being exported; try again")


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
