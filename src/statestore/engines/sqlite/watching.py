"""What happened since a moment, read from the table of changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final, NamedTuple

from statestore.engine import Changed, ChangePage
from statestore.engines.columns import kind_in
from statestore.engines.places import LAST_SEQ, place_of, seq_of
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.indexing import last_change
from statestore.engines.sqlite.statements import SQL
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.errors import CursorExpired
from statestore.stored import StoredRecord

MOST: Final = 2**31
"""More rows than any page has."""
AT_A_LOOK: Final = 500
"""How many changes are looked at for those who wait."""


def present_cursor(connection: sqlite3.Connection) -> str:
    """The cursor after which nothing happened yet."""
    return Moment(_identity(connection), last_change(connection)).cursor


def _identity(connection: sqlite3.Connection) -> str:
    return connection.execute(SQL["identity"]).fetchone()[0]


def read_changes(
    connection: sqlite3.Connection, after: str, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a cursor, in order."""
    moment = Moment.parse(after, last_seq=LAST_SEQ)
    with snapshot(connection):
        found = _changes_after(connection, moment, limit, session_id, user_id)

        def added(row: ChangeRow, told: int) -> Iterator[StoredRecord]:
            assert row.first is not None
            assert row.last is not None
            places = place_of(row.number, max(row.first, told + 1)), place_of(row.number, row.last)
            for place, column, body in connection.execute(SQL["added_records"], places):
                yield StoredRecord(seq_of(place), kind_in(column, body), body)

        return tell(found.rows, moment, added, until=found.until, limit=limit)


def changed_since(connection: sqlite3.Connection, after: str) -> Changed:
    """Which sessions something happened to after a cursor."""
    moment = Moment.parse(after, last_seq=LAST_SEQ)
    with snapshot(connection):
        rows = _changes_after(connection, moment, AT_A_LOOK).rows
    return Changed(
        frozenset(name for row in rows for name in (row.id, row.gone_id) if name is not None),
        frozenset(name for row in rows for name in (row.user_id, row.gone_user) if name is not None),
        Moment(moment.identity, rows[-1].change).cursor if rows else after,
    )


class _Found(NamedTuple):
    """Some changes, and the last one that was looked at for them."""

    rows: list[ChangeRow]
    until: int


def _changes_after(
    connection: sqlite3.Connection,
    moment: Moment,
    limit: int,
    session_id: str | None = None,
    user_id: str | None = None,
) -> _Found:
    """The changes after a moment of one session or all, of one user or all, so many at most.

    `CursorExpired` if some of them are no longer kept.
    """
    oldest, last = connection.execute(SQL["changes_kept"]).fetchone()
    is_ours = moment.identity == _identity(connection) and moment.change <= (last or 0)
    if not is_ours or moment.change < (oldest or 1) - 1:
        raise CursorExpired(
            f"the changes since {moment.cursor[:60]!r} are no longer kept, or it is a cursor of another store: "
            "load what you need, and watch from change_cursor()"
        )
    limit = max(1, min(limit, MOST))
    asked = {"after": moment.change, "session_id": session_id, "user_id": user_id, "limit": limit}
    rows = [ChangeRow(*row) for row in connection.execute(SQL["changes"], asked)]
    return _Found(rows, (last or 0) if len(rows) < limit else rows[-1].change)
