"""What the index of words has, and what it does not have yet.

What that is follows from the table of changes. If that does not go back far enough, all sessions are looked through.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from statestore.engines.columns import INT_MAX
from statestore.engines.postgres.cutting import Text, Words, words_of
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.statements import SQL
from statestore.searching import RULES, TITLE_SEQ

RECORDS_A_STEP: Final = 1000
SESSIONS_A_STEP: Final = 200
BYTES_A_STEP: Final = 1_000_000
"""A step has the time of a call, however short that is; only a single record may be more than this."""


class State(NamedTuple):
    """How far the index is, and how far the changes are."""

    rules: int
    change: int
    swept: str | None
    forgotten: int
    last: int

    @property
    def is_followed(self) -> bool:
        """Whether what it does not have yet follows from the changes."""
        return self.rules == RULES and self.swept is None and self.change >= self.forgotten

    def has_seen(self, change: int) -> bool:
        """Whether it has everything up to a change."""
        return self.rules == RULES and self.swept is None and self.change >= change


async def state_of(connection: Connection) -> State:
    """How far the index is."""
    (row,) = await connection.fetch(SQL["indexing_state"])
    return State(*row)


class Pending(NamedTuple):
    """What the index does not have yet."""

    records: Sequence[Text]
    titles: Sequence[tuple[str, int, bytes | None]]
    is_all: bool

    @property
    def texts(self) -> Iterator[Text]:
        """What is to be cut into words."""
        yield from self.records
        for session_id, number, title in self.titles:
            yield Text(session_id, number, TITLE_SEQ, 0, title or b"")

    @property
    def reached(self) -> list[tuple[str, int, int]]:
        """The number of each session, and of its last record that is looked at."""
        return list({record.id: record[:3] for record in self.records}.values())

    @property
    def end(self) -> Point:
        """The last record that is looked at."""
        return Point(self.records[-1].id, self.records[-1].seq)


class Point(NamedTuple):
    """A record; what comes after it are later ones of its session, and sessions with higher ids."""

    id: str
    seq: int


START: Final = Point("", 0)


async def pending_of(connection: Connection, sessions: Mapping[str, int], *, after: Point = START) -> Pending:
    """What the index does not have yet of some sessions, of each up to a record: a step of it."""
    ids, ends = list(sessions), list(sessions.values())
    found = await connection.fetch(SQL["records_to_index"], ids, ends, RECORDS_A_STEP, BYTES_A_STEP, *after)
    records = [Text(*row) for row in found]
    titles: list[tuple[str, int, bytes | None]] = []
    if after == START:
        titles = [(row[0], row[1], row[2]) for row in await connection.fetch(SQL["titles_to_index"], ids)]
    total = sum(len(record.body) for record in records)
    return Pending(records, titles, is_all=len(records) < RECORDS_A_STEP and total < BYTES_A_STEP)


async def unindexed(connection: Connection, wanted: Sequence[str]) -> AsyncGenerator[list[Words]]:
    """What the index does not have yet of any session, and has all that is wanted, step by step."""
    state = await state_of(connection)
    if state.has_seen(state.last):
        return
    async for ids in _unindexed_sessions(connection, state):
        after: Point | None = START
        while after is not None:
            pending = await pending_of(connection, dict.fromkeys(ids, INT_MAX), after=after)
            yield [words async for piece in words_of(pending.texts, wanted) for words in piece]
            after = None if pending.is_all else pending.end


async def _unindexed_sessions(connection: Connection, state: State) -> AsyncGenerator[Sequence[str]]:
    """The ids of the sessions of which something may not be in the index, as many as make a step."""
    if state.is_followed:
        rows = await connection.fetch(SQL["changes_to_index"], state.change, state.last, INT_MAX)
        ids = sorted({row[1] for row in rows})
        for at in range(0, len(ids), SESSIONS_A_STEP):
            yield ids[at : at + SESSIONS_A_STEP]
        return
    swept: str | None = ""
    while swept is not None:
        sessions, swept = await sessions_after(connection, swept)
        yield list(sessions)


async def sessions_after(connection: Connection, swept: str) -> tuple[dict[str, int], str | None]:
    """The next sessions, each with its last record, and the last of these sessions if there may be more.

    Those that are gone are among them as long as the index has something of them.
    """
    rows = await connection.fetch(SQL["sessions_to_index"], swept, SESSIONS_A_STEP)
    return {row[0]: row[1] for row in rows}, rows[-1][0] if len(rows) == SESSIONS_A_STEP else None
