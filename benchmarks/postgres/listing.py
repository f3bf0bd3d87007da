"""The newest 50 of many sessions."""

from __future__ import annotations

import time

from benchmarks.timing import Result
from statestore import AsyncStateStore, Session

TOGETHER = 1000


async def run(url: str) -> list[Result]:
    async with (
        AsyncStateStore.open(f"{url}?schema=few", durability="relaxed") as few,
        AsyncStateStore.open(f"{url}?schema=many", durability="relaxed") as many,
    ):
        await _fill(few, 1_000)
        await _fill(many, 100_000)
        pairs: list[tuple[float, float]] = []
        for turn in range(303):
            start = time.perf_counter()
            await many.list_sessions(limit=50)
            middle = time.perf_counter()
            await few.list_sessions(limit=50)
            if turn >= 3:
                pairs.append((middle - start, time.perf_counter() - middle))
    return [Result.of("newest 50 of 100,000 sessions", 1.5, "newest 50 of 1,000", pairs)]


async def _fill(store: AsyncStateStore, sessions: int) -> None:
    for first in range(0, sessions, TOGETHER):
        async with store.batch() as batch:
            for number in range(first, first + TOGETHER):
                batch.save_session(Session(f"user-{number % 100}", f"session-{number:06}"))
