"""What the index of words has, and what it does not have yet.

What that is follows from the table of changes. If that does not go back far enough, all sessions are looked through.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from statestore.engines.columns import INT_MAX, kind_of_column
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.lexemes import indexed_form
from statestore.engines.postgres.statements import SQL
from statestore.searching import RULES, TITLE_SEQ, text_to_index

RECORDS_A_STEP: Final = 1000
SESSIONS_A_STEP: Final = 200
BYTES_A_STEP: Final = 1_000_000
"""A step has the time of a call, however short that is; only a single record may be more than this."""

LITTLE: Final = 20_000
"""How many bytes are cut into words in the event loop itself; more would hold everybody up."""


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


class Words(NamedTuple):
    """What is to be added to the index."""

    id: str
    number: int
    seq: int
    lexemes: str
    line: str | None


class Pending(NamedTuple):
    """What the index does not have yet."""

    words: list[Words]
    reached: dict[str, tuple[int, int]]
    """The number of each session, and of its last record that is looked at."""
    titles: list[tuple[str, int, bytes | None]]
    is_all: bool

    @property
    def end(self) -> Point:
        """The last record that is looked at."""
        session_id, (_, seq) = next(reversed(self.reached.items()))
        return Point(session_id, seq)


class Point(NamedTuple):
    """A record; what comes after it are later ones of its session, and sessions with higher ids."""

    id: str
    seq: int


START: Final = Point("", 0)


async def pending_of(
    connection: Connection, sessions: Mapping[str, int], *, after: Point = START, wanted: Sequence[str] = ()
) -> Pending:
    """What the index does not have yet of some sessions, of each up to a record: a step of it.

    And only what has all that is wanted.
    """
    ids, ends = list(sessions), list(sessions.values())
    found = await connection.fetch(SQL["records_to_index"], ids, ends, RECORDS_A_STEP, BYTES_A_STEP, *after)
    titles: list[tuple[str, int, bytes | None]] = []
    if after == START:
        titles = [(row[0], row[1], row[2]) for row in await connection.fetch(SQL["titles_to_index"], ids)]
    reached = {session_id: (number, seq) for session_id, number, seq, _, _ in found}
    total = sum(len(row[4]) for row in found)
    if total + sum(len(title or b"") for _, _, title in titles) > LITTLE:
        words = await asyncio.to_thread(_words_of, found, titles, wanted)
    else:
        words = _words_of(found, titles, wanted)
    return Pending(words, reached, titles, is_all=len(found) < RECORDS_A_STEP and total < BYTES_A_STEP)


def _words_of(
    records: Sequence[Row], titles: Sequence[tuple[str, int, bytes | None]], wanted: Sequence[str]
) -> list[Words]:
    words: list[Words] = []
    for session_id, number, seq, column, body in records:
        words += _words(session_id, number, seq, text_to_index(kind_of_column(column), body), wanted)
    for session_id, number, title in titles:
        words += _words(session_id, number, TITLE_SEQ, (title or b"").decode(errors="replace"), wanted)
    return words


def _words(session_id: str, number: int, seq: int, text: str, wanted: Sequence[str]) -> Iterable[Words]:
    form = indexed_form(text, wanted)
    return () if form is None else (Words(session_id, number, seq, *form),)


async def unindexed(connection: Connection, wanted: Sequence[str]) -> AsyncGenerator[list[Words]]:
    """What the index does not have yet of any session, and has all that is wanted, step by step."""
    state = await state_of(connection)
    if state.has_seen(state.last):
        return
    async for ids in _unindexed_sessions(connection, state):
        after: Point | None = START
        while after is not None:
            pending = await pending_of(connection, dict.fromkeys(ids, INT_MAX), after=after, wanted=wanted)
            yield pending.words
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
