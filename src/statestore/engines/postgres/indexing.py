"""Keeping the index of words up to date: when a search asks for it, in steps that let others have their turn.

What there is to do follows from the table of changes. If that does not go back far enough, the index is made anew,
session by session. Doing something twice does no harm: so what may be incomplete is simply looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final, NamedTuple

from statestore.engines.columns import INT_MAX, kind_of_column
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.lexemes import indexed_form
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import transaction
from statestore.engines.postgres.watching import horizon
from statestore.searching import RULES, TITLE_SEQ, text_to_index

RECORDS_A_STEP: Final = 1000
SESSIONS_A_STEP: Final = 1000
CHANGES_A_STEP: Final = 5000
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
    def is_usable(self) -> bool:
        """Whether it can be brought up to date, and need not be made anew."""
        return self.rules == RULES and (self.swept is not None or self.change >= self.forgotten)

    @property
    def is_complete(self) -> bool:
        """Whether there is nothing to do."""
        return self.is_usable and self.swept is None and self.change >= self.last


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
    connection: Connection, ids: Sequence[str], *, after: Point = START, wanted: Sequence[str] = ()
) -> Pending:
    """What the index does not have yet of some sessions, a step of it, and only what has all that is wanted."""
    found = await connection.fetch(SQL["records_to_index"], ids, RECORDS_A_STEP, BYTES_A_STEP, *after)
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
    if state.is_complete:
        return
    async for ids in _unindexed_sessions(connection, state):
        after: Point | None = START
        while after is not None:
            pending = await pending_of(connection, ids, after=after, wanted=wanted)
            yield pending.words
            after = None if pending.is_all else pending.end


async def _unindexed_sessions(connection: Connection, state: State) -> AsyncGenerator[list[str]]:
    """The ids of the sessions of which something may not be in the index, as many as make a step."""
    if state.is_usable and state.swept is None:
        rows = await connection.fetch(SQL["changes_to_index"], state.change, INT_MAX)
        ids = sorted({session_id for _, session_id, _ in rows})
        for at in range(0, len(ids), SESSIONS_A_STEP):
            yield ids[at : at + SESSIONS_A_STEP]
        return
    rows = await connection.fetch(SQL["sessions_to_index"], "", SESSIONS_A_STEP)
    while rows:
        yield [row[0] for row in rows]
        rows = await connection.fetch(SQL["sessions_to_index"], rows[-1][0], SESSIONS_A_STEP)


async def index_some(connection: Connection) -> bool:
    """Bring the index a step further; whether it has everything then that was there before."""
    async with transaction(connection):
        await connection.execute(SQL["lock_indexing"])
        state = await state_of(connection)
        if state.is_complete:
            return True
        if not state.is_usable:
            await connection.execute(SQL["forget_words"])
            state = state._replace(change=(await horizon(connection)).change, swept="")
        step = await (_follow(connection, state) if state.swept is None else _sweep(connection, state))
        await connection.execute(SQL["set_indexing_state"], RULES, step.change, step.swept)
        return step.is_last


class _Step(NamedTuple):
    """How far the index is after a step, and whether that is all."""

    change: int
    swept: str | None
    is_last: bool


async def _sweep(connection: Connection, state: State) -> _Step:
    """Index the next sessions."""
    rows = await connection.fetch(SQL["sessions_to_index"], state.swept, SESSIONS_A_STEP)
    ids = [row[0] for row in rows]
    swept = state.swept
    if await _add(connection, ids):
        swept = ids[-1] if len(ids) == SESSIONS_A_STEP else None
    return _Step(state.change, swept, is_last=False)


async def _follow(connection: Connection, state: State) -> _Step:
    """Index what changed."""
    settled = (await horizon(connection)).change
    rows = await connection.fetch(SQL["changes_to_index"], state.change, CHANGES_A_STEP)
    if (await state_of(connection)).forgotten > state.change:
        return _Step(state.change, None, is_last=False)  # some were forgotten before they were read: it is made anew
    shrunk = {session_id for _, session_id, is_less in rows if is_less}
    if shrunk:
        await connection.execute(SQL["forget_stale_words"], list(shrunk))
    if not await _add(connection, list({session_id for _, session_id, _ in rows})):
        return _Step(state.change, None, is_last=False)
    is_last = len(rows) < CHANGES_A_STEP
    reached = settled if is_last else min(settled, rows[-1][0])
    return _Step(max(state.change, reached), None, is_last)


async def _add(connection: Connection, ids: Sequence[str]) -> bool:
    """Add what the index does not have yet of some sessions; whether that was all."""
    pending = await pending_of(connection, ids)
    if pending.titles:
        await connection.execute(SQL["forget_titles"], [session_id for session_id, _, _ in pending.titles])
        await connection.execute(SQL["set_indexed_titles"], *zip(*pending.titles, strict=True))
    if pending.words:
        await connection.execute(SQL["add_words"], *zip(*pending.words, strict=True))
    if pending.reached:
        rows = [(session_id, *reached) for session_id, reached in pending.reached.items()]
        await connection.execute(SQL["set_indexed"], *zip(*rows, strict=True))
    return pending.is_all
