"""What happened since a moment, read from the table of changes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from statestore.engine import ChangePage
from statestore.engines.columns import kind_in
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.statements import SQL
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.errors import CursorExpired
from statestore.stored import StoredRecord

MOST: Final = 2**31
"""More rows than any page has."""


class Horizon(NamedTuple):
    """Which table of changes this is, the last that it forgot, the last below which none is missing, and the last."""

    identity: str
    forgotten: int
    change: int
    last: int


async def horizon(connection: Connection) -> Horizon:
    """How far changes can be told. Later ones wait until the transactions before them have ended."""
    (row,) = await connection.fetch(SQL["horizon"])
    return Horizon(*row)


async def present_cursor(connection: Connection) -> str:
    """The cursor after which nothing happened yet."""
    now = await horizon(connection)
    return Moment(now.identity, now.change).cursor


async def read_changes(
    connection: Connection, after: str, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a cursor, in order."""
    moment = Moment.parse(after)
    now = await horizon(connection)
    _check_kept(moment, now)
    if moment.change == now.change:
        return ChangePage([], after)
    found = await connection.fetch(SQL["changes"], moment.change, now.change, min(limit, MOST))
    rows = [ChangeRow(*row) for row in found]
    wanted = [row for row in rows if _is_wanted(row, session_id, user_id)]
    added = await _added_records(connection, wanted, moment, limit)
    _check_kept(moment, await horizon(connection))  # and not forgotten before it was read
    return tell(rows, moment, lambda row, _: added[row.change], session_id=session_id, user_id=user_id, limit=limit)


def _check_kept(moment: Moment, now: Horizon) -> None:
    """Refuse a moment after which something is no longer there, or that is of another store."""
    if moment.identity != now.identity or not now.forgotten <= moment.change <= now.change:
        raise CursorExpired(
            f"the changes since {moment.cursor[:60]!r} are no longer kept, or it is a cursor of another store: "
            "load what you need, and watch from change_cursor()"
        )


def _is_wanted(row: ChangeRow, session_id: str | None, user_id: str | None) -> bool:
    return (
        row.first is not None and row.id is not None and session_id in (None, row.id) and user_id in (None, row.user_id)
    )


async def _added_records(
    connection: Connection, rows: Sequence[ChangeRow], moment: Moment, limit: int
) -> dict[int, list[StoredRecord]]:
    """What there still is of the records that changes added, as many as a page can tell."""
    added: dict[int, list[StoredRecord]] = defaultdict(list)
    if rows:
        numbers = [row.change for row in rows]
        partly_told = moment.change + 1 if moment.seq else moment.change
        found = await connection.fetch(SQL["added_records"], numbers, partly_told, moment.seq, min(limit, MOST))
        for change, seq, column, body in found:
            added[change].append(StoredRecord(seq, kind_in(column, body), body))
    return added
