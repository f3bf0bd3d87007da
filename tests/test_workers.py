"""The threads of a store that several event loops use: no more of them than there may be."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from statestore.bridge import workers
from statestore.bridge.workers import Workers


def test_several_loops_start_no_more_threads_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    start = workers.started
    all_started: list[threading.Thread] = []

    def slowly_started(*args: Any) -> threading.Thread:
        time.sleep(0.02)  # in which another loop looks, too
        all_started.append(start(*args))
        return all_started[-1]

    monkeypatch.setattr(workers, "started", slowly_started)
    shared = Workers(2)
    are_ready = threading.Barrier(6)

    async def nap(number: int) -> int:
        time.sleep(0.001)  # noqa: ASYNC251 - it runs in a thread, where it blocks
        return number

    async def use() -> None:
        are_ready.wait(60)
        assert await asyncio.gather(*(shared.run(nap(number)) for number in range(10))) == list(range(10))

    loops = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(6)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(60)
    shared.stop()
    for thread in all_started:
        thread.join(60)
        assert not thread.is_alive()
    assert len(all_started) == 2
