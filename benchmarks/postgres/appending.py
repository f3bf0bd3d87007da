"""Appending one exchange: from one task, and from many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from benchmarks.postgres import bare
from benchmarks.postgres.bare import MESSAGE
from benchmarks.timing import Result
from statestore import AgentResponse, AsyncStateStore, Session, UserMessage

TASKS = 64
CONNECTIONS = 16
FEW, MANY = 2_000, 16_000
FLOOR = "the same statements, a transaction each, bare asyncpg"


async def run(url: str) -> list[Result]:
    await bare.prepare(url, TASKS)
    connection = await bare.connect(url)
    pool = await bare.pool_of(url, CONNECTIONS)
    async with AsyncStateStore.open(url) as store:
        async with store.batch() as batch:
            for number in range(TASKS):
                batch.save_session(Session("user", f"session-{number}"))

        async def append(number: int, times: int) -> None:
            for _ in range(times):
                await store.append(f"session-{number}", UserMessage(MESSAGE), AgentResponse(MESSAGE))

        async def bare_append(number: int, times: int) -> None:
            for _ in range(times):
                async with pool.acquire() as own:
                    await bare.append(own, number)

        one = await _in_turns(lambda: append(0, 1), lambda: bare.append(connection, 0), turns=400)
        many = await _in_turns(
            lambda: _together(append, 20), lambda: _together(bare_append, 5), turns=11, ours_times=20, floor_times=5
        )
        keyed = [(await _keyed(store, turn, MANY), await _keyed(store, turn, FEW)) for turn in range(5)]
    await pool.close()
    await connection.close()
    return [
        Result.of("append an exchange, async face, one task", 1.5, FLOOR, one),
        Result.of(f"{TASKS} tasks, a session each: time an exchange", 1 / 4, f"{FLOOR}, {CONNECTIONS} at a time", many),
        Result.of(f"{MANY:,} records with keys in one commit: time a record", 1.5, f"{FEW:,} of them", keyed),
    ]


async def _keyed(store: AsyncStateStore, turn: int, count: int) -> float:
    """Seconds a record, of some that are appended to a new session at once."""
    session = Session("user", f"keyed-{turn}-{count}")
    await store.save_session(session)
    records = [UserMessage(MESSAGE) for _ in range(count)]
    start = time.perf_counter()
    await store.append(session.id, *records, keys=[f"key-{number}" for number in range(count)])
    return (time.perf_counter() - start) / count


async def _together(append: Callable[[int, int], Awaitable[None]], times: int) -> None:
    await asyncio.gather(*(append(number, times) for number in range(TASKS)))


async def _in_turns(
    ours: Callable[[], Awaitable[None]],
    floor: Callable[[], Awaitable[None]],
    *,
    turns: int,
    ours_times: int = 0,
    floor_times: int = 0,
) -> list[tuple[float, float]]:
    """Seconds an exchange, ours and the floor's; the first turns warm up."""
    pairs: list[tuple[float, float]] = []
    for turn in range(turns + 3):
        start = time.perf_counter()
        await ours()
        middle = time.perf_counter()
        await floor()
        end = time.perf_counter()
        if turn >= 3:
            pairs.append(((middle - start) / (ours_times * TASKS or 1), (end - middle) / (floor_times * TASKS or 1)))
    return pairs
