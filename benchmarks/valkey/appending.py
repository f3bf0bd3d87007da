"""Appending one exchange: from one task, and from many at once."""

from __future__ import annotations

import asyncio
import time

from benchmarks.timing import WARM_UP, Result
from benchmarks.valkey.bare import MESSAGE, Bare
from statestore import AgentResponse, AsyncStateStore, Session, UserMessage

TASKS = 64
FLOOR = "one bare EVALSHA with the same writes"


async def run(url: str) -> list[Result]:
    bare = Bare(url)
    await bare.start()
    async with AsyncStateStore.open(url) as store:
        for number in range(TASKS):
            await store.save_session(Session.with_id("user", f"s{number}"))

        async def ours(number: int = 0, times: int = 1) -> float:
            start = time.perf_counter()
            for _ in range(times):
                await store.append(f"s{number}", UserMessage(MESSAGE), AgentResponse(MESSAGE))
            return (time.perf_counter() - start) / times

        async def floor(number: int = 0, times: int = 1) -> float:
            start = time.perf_counter()
            for _ in range(times):
                await bare.append(f"s{number}")
            return (time.perf_counter() - start) / times

        async def together(work: object) -> float:
            start = time.perf_counter()
            await asyncio.gather(*(work(number, 20) for number in range(TASKS)))  # type: ignore[operator]
            return (time.perf_counter() - start) / (20 * TASKS)

        ones: list[tuple[float, float]] = []
        for turn in range(600 + WARM_UP):
            pair = (await ours(), await floor()) if turn % 2 else (await floor(), await ours())[::-1]
            ones.append(pair)
        many: list[tuple[float, float]] = []
        crowds: list[tuple[float, float]] = []
        for _ in range(9 + WARM_UP):
            shared = await together(ours)
            many.append((shared, await floor(0, 200)))
            crowds.append((shared, await together(floor)))
    await bare.client.aclose()
    return [
        Result.of("append an exchange, async face, one task", 1.5, FLOOR, ones[WARM_UP:]),
        Result.of("64 tasks, a session each: time an exchange", 1 / 2, f"{FLOOR}, one by one", many[WARM_UP:]),
        Result.of("64 tasks beside 64 tasks", 1.5, f"{FLOOR}, 64 tasks, 64 connections", crowds[WARM_UP:]),
    ]
