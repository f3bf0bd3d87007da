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


_REWOUND: Final = 1
_HEADER: Final = 2
"""What is told of a change before its records, in this order."""


class Moment(NamedTuple):
    """In the table of this identity, all up to a change was told, and of the next one the records up to a number.

    ``step`` is how far it was told before its records: nothing, the rewind, the new header.
    """

    identity: str
    change: int
    seq: int = 0
    step: int = 0

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        step = f":{self.step}" if self.step else ""
        return f"{self.identity}:{self.change}:{self.seq}{step}".encode().hex()

    @classmethod
    def parse(cls, text: str, *, last_seq: int = _LAST) -> Moment:
        """The moment behind a text; `InvalidCursor` if there is none."""
        try:
            identity, *numbers = bytes.fromhex(text).decode().split(":")
            change, seq, step, *rest = (*map(int, numbers), *[0] * (3 - len(numbers)))
            moment = None if rest else cls(identity, change, seq, step)
        except ValueError:
            moment = None
        if moment is None or moment.cursor != text or not _is_sound(moment, last_seq):
            raise InvalidCursor(f"{text[:60]!r} is not a cursor: pass the .cursor of a notice, or change_cursor()")
        return moment


def _is_sound(moment: Moment, last_seq: int) -> bool:
    return 0 <= moment.change <= _LAST and 0 <= moment.seq <= last_seq and 0 <= moment.step <= _HEADER


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


def tell(rows: Iterable[ChangeRow], after: Moment, added: Added, *, until: int, limit: int) -> ChangePage:
    """What happened after a moment, in order: about ``limit`` notices of the changes that somebody asks for.

    Up to the change ``until``, nobody asks for any but these.
    """
    notices: list[StoredNotice] = []
    for row in rows:
        begun = after if row.change == after.change + 1 else Moment(after.identity, row.change - 1)
        for notice in _notices(row, begun, added):
            notices.append(notice)
            if len(notices) >= limit and notice.what == "record":
                return ChangePage(notices, notice.cursor)
        if len(notices) >= limit:
            return ChangePage(notices, Moment(after.identity, row.change).cursor)
    now = Moment(after.identity, until) if until > after.change else after
    return ChangePage(notices, now.cursor)


def _notices(row: ChangeRow, begun: Moment, added: Added) -> Iterator[StoredNotice]:
    """What there is to tell of one change, from where it was begun on."""
    done = Moment(begun.identity, row.change).cursor
    if row.gone_id is not None:
        yield StoredNotice(row.gone_id, "deleted", done)
    if row.id is None:
        return  # the session is gone by now, which a later change tells
    step = _HEADER if begun.seq else begun.step
    if step < _REWOUND and row.rewound_to is not None:
        is_all = row.first is None and not row.is_header
        yield StoredNotice(row.id, "rewound", done if is_all else _at(begun, step=_REWOUND), row.rewound_to)
    if step < _HEADER and row.is_header:
        yield StoredNotice(row.id, "session", done if row.first is None else _at(begun, step=_HEADER))
    if row.first is None or row.last is None:
        return
    for record in added(row, begun.seq):
        yield StoredNotice(
            row.id, "record", done if record.seq == row.last else _at(begun, seq=record.seq), record.seq, record
        )


def _at(begun: Moment, *, seq: int = 0, step: int = 0) -> str:
    return begun._replace(seq=seq, step=step).cursor
