"""What happened since a moment, read from the table of changes. A moment is a change, and a record within it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from statestore.engine import ChangePage
from statestore.engines.sqlite.places import EVENT, MAX_SEQ, kind_of_column, place_of, seq_of
from statestore.engines.sqlite.reading import snapshot
from statestore.engines.sqlite.statements import SQL
from statestore.errors import CursorExpired, InvalidCursor, InvalidValue
from statestore.records import decode_body, kind_of
from statestore.stored import StoredNotice, StoredRecord

MOST: Final = 2**31
"""More rows than any page has."""


class _Moment(NamedTuple):
    """Everything up to a change was told, and of the one after it the records up to a number."""

    store: str
    change: int
    seq: int = 0

    @property
    def cursor(self) -> str:
        return f"{self.store}:{self.change}:{self.seq}".encode().hex()

    @classmethod
    def parse(cls, text: str) -> _Moment:
        try:
            store, change, seq = bytes.fromhex(text).decode().split(":")
            moment = cls(store, int(change), int(seq))
        except ValueError:
            moment = None
        if moment is None or moment.cursor != text or not (0 <= moment.change < 2**63 and 0 <= moment.seq <= MAX_SEQ):
            raise InvalidCursor(f"{text[:60]!r} is not a cursor: pass the .cursor of a notice, or change_cursor()")
        return moment


class _Change(NamedTuple):
    """A row of the table of changes, with the session as it is now."""

    change: int
    number: int
    first: int | None
    last: int | None
    rewound_to: int | None
    is_header: int | None
    gone_id: str | None
    gone_user: str | None
    id: str | None
    user_id: str | None


def present_cursor(connection: sqlite3.Connection) -> str:
    """The cursor after which nothing happened yet."""
    _, last = connection.execute(SQL["changes_kept"]).fetchone()
    return _Moment(_identity(connection), last or 0).cursor


def _identity(connection: sqlite3.Connection) -> str:
    return connection.execute(SQL["identity"]).fetchone()[0]


def read_changes(
    connection: sqlite3.Connection, after: str, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a cursor, in order."""
    moment = _Moment.parse(after)
    notices: list[StoredNotice] = []
    with snapshot(connection):
        oldest, last = connection.execute(SQL["changes_kept"]).fetchone()
        is_ours = moment.store == _identity(connection) and moment.change <= (last or 0)
        if not is_ours or moment.change < (oldest or 1) - 1:
            raise CursorExpired(
                f"the changes since {after[:60]!r} are no longer kept, or it is a cursor of another store: "
                "load what you need, and watch from change_cursor()"
            )
        rows = connection.execute(SQL["changes"], (moment.change, min(limit, MOST))).fetchall()
        for row in rows:
            change = _Change(*row)
            wanted = (session_id is None or session_id in (change.id, change.gone_id)) and (
                user_id is None or user_id in (change.user_id, change.gone_user)
            )
            told = moment.seq if change.change == moment.change + 1 else 0
            for notice in _notices(connection, moment.store, change, told) if wanted else ():
                notices.append(notice)
                if len(notices) >= limit and notice.what == "record":
                    return ChangePage(notices, notice.cursor)
            after = _Moment(moment.store, change.change).cursor
            if len(notices) >= limit:
                break
    return ChangePage(notices, after)


def _notices(connection: sqlite3.Connection, store: str, change: _Change, told: int) -> Iterator[StoredNotice]:
    """What there is to tell of one change, from the record after ``told`` on."""
    done = _Moment(store, change.change).cursor
    if change.gone_id is not None:
        yield StoredNotice(change.gone_id, "deleted", done)
    if change.id is None:
        return  # the session is gone by now, which a later change tells
    begun = _Moment(store, change.change - 1).cursor
    is_all = change.first is None
    if not told and change.rewound_to is not None:
        yield StoredNotice(change.id, "rewound", done if is_all and not change.is_header else begun, change.rewound_to)
    if not told and change.is_header:
        yield StoredNotice(change.id, "session", done if is_all else begun)
    if change.first is None or change.last is None:
        return
    places = place_of(change.number, max(change.first, told + 1)), place_of(change.number, change.last)
    for place, column, body in connection.execute(SQL["added_records"], places):
        seq = seq_of(place)
        cursor = done if seq == change.last else _Moment(store, change.change - 1, seq).cursor
        yield StoredNotice(change.id, "record", cursor, seq, _record(seq, column, body.encode()))


def _record(seq: int, column: int, body: bytes) -> StoredRecord:
    kind = kind_of_column(column)
    if kind == EVENT:
        with suppress(msgspec.DecodeError, InvalidValue):  # whoever decodes it will tell
            kind = kind_of(decode_body(kind, body))
    return StoredRecord(seq, kind, body)
