"""What happened since a moment, read from the table of changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from statestore.engine import ChangePage
from statestore.engines.columns import kind_in
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.persisting import Persistence
from statestore.engines.postgres.sharing import SharedReading
from statestore.engines.postgres.statements import SQL
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.errors import CursorExpired
from statestore.stored import StoredRecord

MOST: Final = 2**31
"""More rows than any page has."""
PATIENCE: Final = 1.0
"""Seconds for which whoever asks for the present waits for transactions that are under way."""
SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
"""Between two looks at whether they have ended."""


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


class Watching:
    """Tells what happened. Watchers that have come equally far read on together."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence
        self._pages = SharedReading(persistence, _page)
        self._added = SharedReading(persistence, _added_records)

    async def present_cursor(self) -> str:
        """The cursor after which nothing happened yet: what is there by now is not told to who goes on from it.

        So transactions that may yet come before that are waited for, but not for ever: if one does not end, the cursor
        is that of a moment before it, and what was made since is told again.
        """
        now = await self._horizon()
        last, clock = now.last, asyncio.get_running_loop().time
        patience_ends, pause = clock() + PATIENCE, SHORTEST_PAUSE
        while now.change < last and clock() < patience_ends:
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            now = await self._horizon()
        return Moment(now.identity, now.change).cursor

    async def _horizon(self) -> Horizon:
        return await self._persistence.run(lambda connection, _: horizon(connection))

    async def read_changes(self, after: str, session_id: str | None, user_id: str | None, limit: int) -> ChangePage:
        """What happened after a cursor, in order."""
        moment = Moment.parse(after)
        most = max(1, min(limit, MOST))
        page = await self._pages.answer(_Question(moment.change, most))
        if len(page.rows) == most and (session_id is not None or user_id is not None):  # far behind, on its own
            page = await self._pages.answer(_Question(moment.change, most, session_id, user_id))
        if moment.identity != page.identity or not page.forgotten <= moment.change <= page.settled:
            raise _expired(moment)
        rows = [row for row in page.rows if _is_wanted(row, session_id, user_id)]
        added = _Added(page.forgotten, {})
        if adding := tuple(row.change for row in rows if row.first is not None and row.id is not None):
            added = await self._added.answer((adding, moment.change, moment.seq, most))
        if added.forgotten > moment.change:
            raise _expired(moment)
        until = page.settled if len(page.rows) < most else page.rows[-1].change
        return tell(rows, moment, lambda row, _: added.records.get(row.change, ()), until=until, limit=limit)


def _expired(moment: Moment) -> CursorExpired:
    """Something after a moment is no longer there, or it is of another store."""
    return CursorExpired(
        f"the changes since {moment.cursor[:60]!r} are no longer kept, or it is a cursor of another store: "
        "load what you need, and watch from change_cursor()"
    )


def _is_wanted(row: ChangeRow, session_id: str | None, user_id: str | None) -> bool:
    return session_id in (None, row.id, row.gone_id) and user_id in (None, row.user_id, row.gone_user)


class _Question(NamedTuple):
    """The changes after a number, so many at most, of one session or all, of one user or all."""

    after: int
    most: int
    session_id: str | None = None
    user_id: str | None = None


class _Page(NamedTuple):
    """Changes, and of the same state: which table this is, the last that it forgot, and the last that can be told."""

    identity: str
    forgotten: int
    settled: int
    rows: Sequence[ChangeRow]


async def _page(connection: Connection, asked: _Question) -> _Page:
    """The changes that are asked for."""
    found = [tuple(row) for row in await connection.fetch(SQL["changes"], *asked)]
    identity, forgotten, settled = found[0][:3]
    return _Page(identity, forgotten, settled, [ChangeRow(*row[3:]) for row in found if row[3] is not None])


class _Added(NamedTuple):
    """What there is of the records that changes added, and of the same state: the last change that was forgotten."""

    forgotten: int
    records: Mapping[int, Sequence[StoredRecord]]


async def _added_records(connection: Connection, asked: tuple[Sequence[int], int, int, int]) -> _Added:
    """The records that some changes added, as many as a page can tell; of the first one perhaps some were told."""
    changes, after, seq, most = asked
    partly_told = after + 1 if seq else after
    found = await connection.fetch(SQL["added_records"], changes, partly_told, seq, most)
    records: dict[int, list[StoredRecord]] = defaultdict(list)
    for _, change, number, column, body in found:
        if change is not None:
            records[change].append(StoredRecord(number, kind_in(column, body), body))
    return _Added(found[0][0], records)
