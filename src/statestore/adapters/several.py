"""Doing the same for several items: a few at a time where each waits for a server or a thread.

What lists many sessions or documents reads each by itself. On a server every read is a round trip: those that are
under way together wait together.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar, cast

from statestore.bridge import LoopThreadEngine
from statestore.host import step
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of

A = TypeVar("A")
T = TypeVar("T")
Work = Callable[[A], Coroutine[Any, Any, T]]
AT_ONCE: Final = 32
"""How many are under way at a time: the store's other callers get their turn in between."""
_THREADS: Final = 16
"""The same where each takes a thread."""


async def for_each(store: AsyncStateStore, items: Iterable[A], work: Work[A, T]) -> list[T]:
    """What comes of the work on each item, in order. If one fails, no more are begun, and those that were are over."""
    waiting = list(items)
    if len(waiting) > 1:
        engine = engine_of(store)
        if engine.runs_in == "loop":
            return await _in_tasks(waiting, work)
        if isinstance(engine, LoopThreadEngine):
            return _in_threads(waiting, work)
    return [await work(item) for item in waiting]


async def _in_tasks(items: Sequence[A], work: Work[A, T]) -> list[T]:
    found: list[T | None] = [None] * len(items)
    waiting = deque(enumerate(items))

    async def take() -> None:
        while waiting:
            place, item = waiting.popleft()
            try:
                found[place] = await work(item)
            except BaseException:
                waiting.clear()
                raise

    for failure in await asyncio.gather(*(take() for _ in items[:AT_ONCE]), return_exceptions=True):
        if failure is not None:
            raise failure
    return cast("list[T]", found)


def _in_threads(items: Sequence[A], work: Work[A, T]) -> list[T]:
    """For plain code on a server: a thread waits for each call."""

    def done(item: A) -> T:
        return step(work(item))

    with ThreadPoolExecutor(min(_THREADS, len(items)), "statestore-several") as threads:
        return list(threads.map(done, items))
