"""What happened since a moment, read from the change log. A moment is a change, and a record within it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

from statestore.engine import ChangePage
from statestore.engines.files.image import SessionImage
from statestore.engines.files.looking import Looker
from statestore.engines.files.noting import LogState, log_state
from statestore.engines.files.states import mark_of, marks_in
from statestore.errors import CorruptSession, CursorExpired, InvalidCursor
from statestore.stored import StoredNotice, StoredRecord

_MAX: Final = 2**63


class Moment(NamedTuple):
    """In the log of this identity, all up to a change was told, and of the one after it the records up to a number."""

    identity: str
    change: int
    seq: int = 0

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        return f"{self.identity}:{self.change}:{self.seq}".encode().hex()

    @classmethod
    def parse(cls, text: str) -> Moment:
        """The moment behind a text; `InvalidCursor` if there is none."""
        try:
            identity, change, seq = bytes.fromhex(text).decode().split(":")
            moment = cls(identity, int(change), int(seq))
        except ValueError:
            moment = None
        if moment is None or moment.cursor != text or not (0 <= moment.change < _MAX and 0 <= moment.seq < _MAX):
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
    created: str | None


_CHANGES: Final = (
    "SELECT change, changes.number, first, last, rewound_to, is_header, gone_id, gone_user, id, user_id, created "
    "FROM changes LEFT JOIN sessions ON sessions.number = changes.number WHERE change > ? ORDER BY change LIMIT ?"
)


def read_changes(
    connection: sqlite3.Connection,
    looker: Looker,
    after: Moment,
    *,
    session_id: str | None,
    user_id: str | None,
    limit: int,
) -> ChangePage:
    """What happened after a moment, in order."""
    notices: list[StoredNotice] = []
    now = after
    connection.execute("BEGIN")
    try:
        _check(after, log_state(connection))
        for row in connection.execute(_CHANGES, (after.change, min(limit, _MAX - 1))).fetchall():
            change = _Change(*row)
            wanted = (session_id is None or session_id in (change.id, change.gone_id)) and (
                user_id is None or user_id in (change.user_id, change.gone_user)
            )
            now = Moment(after.identity, change.change)
            if not wanted:
                continue
            told = after.seq if change.change == after.change + 1 else 0
            for notice in _notices(_Telling(connection, looker, change), now, told):
                notices.append(notice)
                if len(notices) >= limit and notice.record is not None:
                    return ChangePage(notices, notice.cursor)
            if len(notices) >= limit:
                break
    finally:
        connection.execute("COMMIT")
    return ChangePage(notices, now.cursor)


def _check(after: Moment, state: LogState) -> None:
    """Raise if the log cannot tell what happened after a moment."""
    if after.identity == state.identity and after.change > state.last:
        raise InvalidCursor(f"{after.cursor[:60]!r} is not a cursor of this store, which has seen less")
    if after.identity != state.identity or after.change < state.oldest - 1:
        raise CursorExpired(
            f"the changes since {after.cursor[:60]!r} are no longer kept: load anew, and watch from change_cursor()"
        )


def _notices(telling: _Telling, now: Moment, told: int) -> Iterator[StoredNotice]:
    """What there is to tell of one change, from the record after ``told`` on."""
    change, done = telling.change, now.cursor
    if change.gone_id is not None:
        yield StoredNotice(change.gone_id, "deleted", done)
    if change.id is None:
        return  # the session is gone by now, which a later change tells
    begun = Moment(now.identity, now.change - 1)
    if not told and change.rewound_to is not None:
        is_all = change.first is None and not change.is_header
        yield StoredNotice(change.id, "rewound", done if is_all else begun.cursor, change.rewound_to)
    if not told and change.is_header:
        yield StoredNotice(change.id, "session", done if change.first is None else begun.cursor)
    for record in telling.added(told):
        cursor = done if record.seq == change.last else begun._replace(seq=record.seq).cursor
        yield StoredNotice(change.id, "record", cursor, record.seq, record)


class _Telling:
    """One change that is being told, with what there still is of its records."""

    def __init__(self, connection: sqlite3.Connection, looker: Looker, change: _Change) -> None:
        self._connection = connection
        self._looker = looker
        self.change = change

    def added(self, told: int) -> Iterator[StoredRecord]:
        """The records that were added, after ``told``, and neither removed nor rewritten again."""
        change = self.change
        image = self._image() if change.first is not None and change.last is not None else None
        if image is None or change.first is None or change.last is None:
            return
        number = change.number, change.change
        (rewound_to,) = self._connection.execute(
            "SELECT min(rewound_to) FROM changes WHERE number = ? AND change > ? AND rewound_to IS NOT NULL", number
        ).fetchone()
        (marks,) = self._connection.execute("SELECT marks FROM marks WHERE number = ?", number[:1]).fetchone()
        first = max(change.first, told + 1)
        last = change.last if rewound_to is None else min(change.last, rewound_to)
        for record, mark in zip(self._looker.records(image), marks_in(marks), strict=False):
            # One that is not as the log has it was changed since the scan, which the next one tells.
            if first <= record.seq <= last and mark == mark_of(record):
                yield record

    def _image(self) -> SessionImage | None:
        """The session's file, if it still is that session's and can be read."""
        assert self.change.id is not None
        try:
            image = self._looker.image(self.change.id)
        except CorruptSession:
            return None
        if image is None:
            return None
        fields = image.text.fields
        return image if (fields.user_id, fields.created) == (self.change.user_id, self.change.created) else None
