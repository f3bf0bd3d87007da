"""Opening and closing are cancelled wherever they wait: no handle and no thread is left, and the store can be had."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time

import pytest

from faults.cancelling import MOMENTS, Moment, cancelled_at
from soak.grounds import fresh
from statestore import AsyncStateStore, UserMessage

ENGINES = ("files", "sqlite", "postgres", "valkey")
PATIENCE = 30.0


def _threads() -> int:
    return sum(thread.name.startswith("statestore") for thread in threading.enumerate())


def _handles() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _settled(handles: int) -> None:
    """Wait until nothing is left of what was cancelled."""
    deadline = time.monotonic() + PATIENCE
    while _threads() or _handles() > handles:
        assert time.monotonic() < deadline, f"{_threads()} threads, {_handles() - handles} handles are left"
        gc.collect()
        await asyncio.sleep(0.01)


async def _furnished(target: str) -> None:
    async with AsyncStateStore.open(target) as store:
        await store.get_or_create_session("alice", "one")
        await store.append("one", UserMessage("hello"))


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_cancelled_opening_leaves_nothing_behind(engine: str, moment: Moment) -> None:
    async def run(target: str) -> None:
        await _furnished(target)
        handles = _handles()
        for nth in range(1, 100):

            async def opened() -> None:
                store = await AsyncStateStore.open(target)
                await store.close()

            ended = await cancelled_at(opened(), nth, moment)
            assert ended.error is None or isinstance(ended.error, asyncio.CancelledError)
            await _settled(handles)
            if ended.suspensions < nth:
                break
        async with AsyncStateStore.open(target) as store:
            assert len(await store.timeline("one")) == 1

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cancelled_closing_closes_all_the_same(engine: str) -> None:
    async def run(target: str) -> None:
        await _furnished(target)
        handles = _handles()
        for moment in MOMENTS:
            for nth in range(1, 20):
                store = await AsyncStateStore.open(target)
                await store.append("one", UserMessage("more"))
                ended = await cancelled_at(store.close(), nth, moment)
                del store
                await _settled(handles)
                if ended.suspensions < nth:
                    break

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))
