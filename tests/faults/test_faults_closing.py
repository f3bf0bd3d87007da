"""Closing a store is called off, while calls are under way or not: nothing is lost, and nothing stays open."""

from __future__ import annotations

import asyncio

import pytest

from faults.handles import handles_in_use
from soak.grounds import fresh
from statestore import AsyncStateStore, StateStore, UserMessage

SERVERS = ("postgres", "valkey", "valkey-cluster")
PATIENCE = 10.0


async def _closed_since(before: set[int]) -> bool:
    """Whether all that was opened since then is closed, soon."""
    for _ in range(100):
        if handles_in_use() <= before:
            return True
        await asyncio.sleep(PATIENCE / 100)
    return False


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize("calls", [0, 1, 20])
@pytest.mark.parametrize("engine", SERVERS)
def test_a_close_that_is_called_off_lets_go_of_everything(engine: str, calls: int, steps: int) -> None:
    complaints: list[object] = []

    async def run(target: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        before = handles_in_use()
        store = await AsyncStateStore.open(target)
        await store.get_or_create_session("alice", "one")
        await asyncio.gather(*(store.session_exists("one") for _ in range(5)))
        under_way = [asyncio.create_task(store.append("one", UserMessage("x"))) for _ in range(calls)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        for _ in range(steps):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert sorted(await asyncio.gather(*under_way)) == [[number] for number in range(1, calls + 1)]
        await store.close()
        assert await _closed_since(before), "something stays open"

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))
        assert complaints == []
        with StateStore.open(ground.target) as store:
            assert len(store.timeline("one")) == calls
