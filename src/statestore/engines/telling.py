"""Telling watchers what happened, for engines that keep a table of changes in SQLite.

The caller owns the table and knows what there still is of the records that a change added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from statestore.engine import ChangePage
from statestore.errors import InvalidCursor
from statestore.stored import StoredNotice, StoredRecord

_LAST: Final = 2**63 - 1


class Moment(NamedTuple):
    """In the table of this identity, all up to a change was told, and of the next one the records up to a number."""

    identity: str
    change: int
    seq: int = 0

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        return f"{self.identity}:{self.change}:{self.seq}".encode().hex()

    @classmethod
    def parse(cls, text: str, *, last_seq: int = _LAST) -> Moment:
        """The moment behind a text; `InvalidCursor` if there is none."""
        try:
            identity, change, seq = bytes.fromhex(text).decode().split(":")
            moment = cls(identity, int(change), int(seq))
        except ValueError:
            moment = None
        if moment is None or moment.cursor != text or not (0 <= moment.change <= _LAST and 0 <= moment.seq <= last_seq):
            raise InvalidCursor(f"{text[:60]!r} is not a cursor: pass the .cursor of a notice, or change_cursor()")
        return moment


class ChangeRow(NamedTuple):
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


Added = Callable[[ChangeRow, int], Iterable[StoredRecord]]
"""What there still is of the records that a change added, after a number."""


def tell(
    rows: Iterable[ChangeRow], after: Moment, added: Added, *, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a moment, in order, of one session or all, of one user or all; about ``limit`` notices."""
    notices: list[StoredNotice] = []
    now = after
    for row in rows:
        wanted = (session_id is None or session_id in (row.id, row.gone_id)) and (
            user_id is None or user_id in (row.user_id, row.gone_user)
        )
        now = Moment(after.identity, row.change)
        told = after.seq if row.change == after.change + 1 else 0
        for notice in _notices(row, now, told, added) if wanted else ():
            notices.append(notice)
            if len(notices) >= limit and notice.what == "record":
                return ChangePage(notices, notice.cursor)
        if len(notices) >= limit:
            break
    return ChangePage(notices, now.cursor)


def _notices(row: ChangeRow, now: Moment, told: int, added: Added) -> Iterator[StoredNotice]:
    """What there is to tell of one change, from the record after ``told`` on."""
    done = now.cursor
    if row.gone_id is not None:
        yield StoredNotice(row.gone_id, "deleted", done)
    if row.id is None:
        return  # the session is gone by now, which a later change tells
    begun = Moment(now.identity, now.change - 1)
    if not told and row.rewound_to is not None:
        is_all = row.first is None and not row.is_header
        yield StoredNotice(row.id, "rewound", done if is_all else begun.cursor, row.rewound_to)
    if not told and row.is_header:
        yield StoredNotice(row.id, "session", done if row.first is None else begun.cursor)
    if row.first is None or row.last is None:
        return
    for record in added(row, told):
        cursor = done if record.seq == row.last else begun._replace(seq=record.seq).cursor
        yield StoredNotice(row.id, "record", cursor, record.seq, record)
