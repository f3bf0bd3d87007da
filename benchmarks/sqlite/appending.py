"""Appending one exchange: alone, in a long session, from a task, from many tasks and threads."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sqlite.bare import MESSAGE, Bare
from benchmarks.sqlite.filling import lengthen
from benchmarks.timing import Result, Timed, compare, spread, timed
from statestore import AgentResponse, AsyncStateStore, StateStore, UserMessage

LENGTHS = (10, 1_000, 50_000)
TASKS = 64
REUSED = 600
"""After so many appends, the log of either database was written back and is used again, which is much faster than a log
that grows: what both have in common then hides no difference.
"""
FLOOR = "bare rows and header, one transaction each"


def run(place: Path) -> Iterator[Result]:
    bare = Bare(place / "bare.db")
    bare.connection.execute("BEGIN")
    for number, length in enumerate((*LENGTHS, *[1] * TASKS)):  # the same sessions as ours, so that rows lie alike
        bare.create(number, length)
    bare.connection.execute("COMMIT")
    with StateStore.open(place / "state.db") as store:
        for length in LENGTHS:
            lengthen(store, f"of-{length}", length)
        ours, floor = _appending(store, "of-10"), timed(lambda: bare.append(0))
        for _ in range(REUSED):
            ours(), floor()
        yield compare("append an exchange, plain face", 1.4, ours, FLOOR, floor, turns=600)
        yield from _at_any_length(store)
        yield _from_many_threads(store, bare)
    yield from asyncio.run(_in_a_loop(place / "state.db", bare))
    bare.connection.close()


def _appending(store: StateStore, session_id: str) -> Timed:
    return timed(lambda: store.append(session_id, UserMessage(MESSAGE), AgentResponse(MESSAGE)))


def _at_any_length(store: StateStore) -> Iterator[Result]:
    appends = {f"{length:,}": _appending(store, f"of-{length}") for length in LENGTHS}
    yield spread("append at 10, 1,000 and 50,000 exchanges", 1.2, appends, turns=300)
    saves = {f"{length:,}": _saving(store, f"of-{length}") for length in LENGTHS}
    yield spread("save_session at 10, 1,000 and 50,000 exchanges", 1.2, saves, turns=300)


def _saving(store: StateStore, session_id: str) -> Timed:
    session = store.load_session(session_id)
    assert session is not None

    def save() -> float:
        session.add_user_message(MESSAGE)
        session.add_agent_response(MESSAGE)
        start = time.perf_counter()
        store.save_session(session)
        return time.perf_counter() - start

    return save


def _from_many_threads(store: StateStore, bare: Bare) -> Result:
    for number in range(TASKS):
        lengthen(store, f"thread-{number}", 1)

    def append(number: int) -> None:
        for _ in range(20):
            store.append(f"thread-{number}", UserMessage(MESSAGE), AgentResponse(MESSAGE))

    def together() -> float:
        threads = [threading.Thread(target=append, args=(number,)) for number in range(TASKS)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return (time.perf_counter() - start) / (20 * TASKS)

    name = "64 threads, a session each: time an exchange"
    return compare(name, 1 / 2.0, together, FLOOR, _one_by_one(bare), turns=9)


def _one_by_one(bare: Bare) -> Timed:
    def append() -> float:
        start = time.perf_counter()
        for number in range(300):
            bare.append(len(LENGTHS) + number % TASKS)
        return (time.perf_counter() - start) / 300

    return append


async def _in_a_loop(path: Path, bare: Bare) -> list[Result]:
    async with AsyncStateStore.open(path) as store:

        async def append(session_id: str, times: int) -> float:
            start = time.perf_counter()
            for _ in range(times):
                await store.append(session_id, UserMessage(MESSAGE), AgentResponse(MESSAGE))
            return (time.perf_counter() - start) / times

        async def together() -> float:
            start = time.perf_counter()
            await asyncio.gather(*(append(f"thread-{number}", 40) for number in range(TASKS)))
            return (time.perf_counter() - start) / (40 * TASKS)

        async def bare_in_a_thread() -> float:
            start = time.perf_counter()
            await asyncio.to_thread(bare.append, 0)
            return time.perf_counter() - start

        one_by_one = _one_by_one(bare)
        ones: list[tuple[float, float]] = []
        for turn in range(REUSED + 600):
            pair = (await append("of-10", 1), await bare_in_a_thread())
            if turn >= REUSED:
                ones.append(pair)
        many: list[tuple[float, float]] = []
        for turn in range(11):
            pair = (await together(), one_by_one())
            if turn >= 2:
                many.append(pair)
    to_thread = f"{FLOOR}, through asyncio.to_thread"
    return [
        Result.of("append an exchange, async face, one task", 1.2, to_thread, ones),
        Result.of("64 tasks, a session each: time an exchange", 1 / 2.5, FLOOR, many),
    ]
