"""Bringing the index of words up to date: when a search asks for it, in steps that let others have their turn.

A search needs what happened before it began, and no more: however fast others write meanwhile, there is an end to that.
Doing something twice does no harm: so whatever may be incomplete is simply looked at again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from statestore.engines.postgres.cutting import words_of
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.indexing import State, pending_of, sessions_after, state_of
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import transaction
from statestore.engines.postgres.watching import horizon
from statestore.searching import RULES

CHANGES_A_STEP: Final = 1000


class CatchingUp:
    """Brings the index up to date for all who search in a store: one of them at a time, while the others just wait."""

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self._read = read
        self._wanted = 0
        self._turn: _Turn | None = None

    async def to_present(self) -> None:
        """Have everything in the index that was there before this call."""
        before = self._turn
        state: State = await self._read(state_of)
        last = state.last
        self._wanted = max(self._wanted, last)
        while not state.has_seen(last):
            turn = self._turn
            if turn is None:
                await self._take_turn(_Turn(self._wanted))
                return
            if await turn.is_made() and turn is not before and turn.last >= last:
                return
            state = await self._read(state_of)

    async def _take_turn(self, turn: _Turn) -> None:
        """Index for all who wait; if we are cancelled meanwhile, one of them does."""
        self._turn = turn
        try:
            way = Way(turn.last)
            while way.reached < way.last:
                way = await self._read(index_some, way)
            turn.end.set_result(None)
        except Exception as error:
            turn.end.set_result(error)
            raise
        finally:
            self._turn = None
            turn.end.cancel()


class _Turn:
    """One who searches indexes up to a change: it is made, or there is an error, or it is cancelled."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    async def is_made(self) -> bool:
        """Wait for its end. What made it fail would make others fail, too, after as long a time."""
        await asyncio.wait([self.end])
        if self.end.cancelled():
            return False
        error = self.end.result()
        if error is not None:
            raise error
        return True


class Place(NamedTuple):
    """How far the index is: the last change that it has seen, and, while it is made, the last session."""

    change: int
    swept: str | None


class Portion(NamedTuple):
    """Some sessions, and the last record of each that is to be indexed, in as many steps as that takes."""

    start: Place
    end: Place
    reached: int
    """Of the changes up to this one, all were seen that had happened; before it, others may still turn up."""
    sessions: Mapping[str, int]


class Way(NamedTuple):
    """What a search has to wait for: the last change, how far that is seen, and the portion that is under way."""

    last: int
    reached: int = -1
    portion: Portion | None = None


async def index_some(connection: Connection, way: Way) -> Way:
    """Go a step."""
    async with transaction(connection):
        await connection.execute(SQL["lock_indexing"])
        state = await state_of(connection)
        if state.has_seen(way.last):
            return Way(way.last, way.last)
        portion = way.portion
        if portion is None or state[:3] != (RULES, *portion.start):  # others have done it meanwhile
            portion = await _next_portion(connection, state, way)
        is_all = await _add(connection, portion.sessions)
        await connection.execute(SQL["set_indexing_state"], RULES, *(portion.end if is_all else portion.start))
    return way._replace(reached=portion.reached, portion=None) if is_all else way._replace(portion=portion)


async def _next_portion(connection: Connection, state: State, way: Way) -> Portion:
    if state.rules != RULES:
        await connection.execute(SQL["forget_words"])
    elif state.swept is not None:
        return await _sweep(connection, state.change, state.swept)
    elif (portion := await _follow(connection, state.change, way)) is not None:
        return portion
    return await _sweep(connection, (await horizon(connection)).change, "")


async def _sweep(connection: Connection, change: int, swept: str) -> Portion:
    """The sessions after one, as they are now."""
    sessions, last = await sessions_after(connection, swept)
    await connection.execute(SQL["forget_stale_words"], list(sessions))
    return Portion(Place(change, swept), Place(change, last), -1, sessions)


async def _follow(connection: Connection, change: int, way: Way) -> Portion | None:
    """What changed after a change; ``None`` if that is no longer known."""
    after = max(change, way.reached)
    settled = (await horizon(connection)).change
    rows = await connection.fetch(SQL["changes_to_index"], after, way.last, CHANGES_A_STEP)
    if (await state_of(connection)).forgotten > change:
        return None
    shrunk = {session_id for _, session_id, _, is_less in rows if is_less}
    if shrunk:
        await connection.execute(SQL["forget_stale_words"], list(shrunk))
    sessions: dict[str, int] = {}
    for _, session_id, last, _ in rows:
        sessions[session_id] = max(last, sessions.get(session_id, 0))
    reached = rows[-1][0] if len(rows) == CHANGES_A_STEP else way.last
    seen = max(change, min(settled, reached)) if after == change else change
    return Portion(Place(change, None), Place(seen, None), reached, sessions)


async def _add(connection: Connection, sessions: Mapping[str, int]) -> bool:
    """Add what the index does not have yet of some sessions, of each up to a record; whether that was all."""
    pending = await pending_of(connection, sessions)
    if pending.titles:
        await connection.execute(SQL["forget_titles"], [session_id for session_id, _, _ in pending.titles])
        await connection.execute(SQL["set_indexed_titles"], *zip(*pending.titles, strict=True))
    async with aclosing(words_of(pending.texts)) as pieces:
        async for words in pieces:
            await connection.execute(SQL["add_words"], *zip(*words, strict=True))
    if pending.records:
        await connection.execute(SQL["set_indexed"], *zip(*pending.reached, strict=True))
    return pending.is_all
