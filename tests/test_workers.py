"""The threads of a store that several event loops use: no more of them than there may be, and none is left waiting."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from queue import SimpleQueue
from typing import Any

import pytest

from statestore import StoreClosed
from statestore.bridge import workers, writer
from statestore.bridge.workers import Workers
from statestore.bridge.writer import GroupWriter
from statestore.engine import Batch, Outcome, Result

Call = Callable[[], Awaitable[object]]


class Obliging:
    """Says of every batch that it was made."""

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        return [[Outcome(None)] for _ in batches]


def _with_workers() -> tuple[Call, Callable[[], None]]:
    async def nap() -> None:
        time.sleep(0.001)  # noqa: ASYNC251 - it runs in a thread, where it blocks

    shared = Workers(2)
    return lambda: shared.run(nap()), shared.stop


def _with_writer() -> tuple[Call, Callable[[], None]]:
    shared = GroupWriter(Obliging())
    return lambda: shared.commit(()), shared.stop


@pytest.mark.parametrize(("module", "most", "shared"), [(workers, 2, _with_workers), (writer, 1, _with_writer)])
def test_several_loops_start_no_more_threads_than_one(
    module: Any, most: int, shared: Callable[[], tuple[Call, Callable[[], None]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    start = module.started
    all_started: list[threading.Thread] = []

    def slowly_started(*args: Any) -> threading.Thread:
        time.sleep(0.02)  # in which another loop looks, too
        all_started.append(start(*args))
        return all_started[-1]

    monkeypatch.setattr(module, "started", slowly_started)
    call, stop = shared()
    are_ready = threading.Barrier(6)
    served: list[int] = []

    async def use() -> None:
        are_ready.wait(60)
        served.append(len(await asyncio.gather(*(call() for _ in range(10)))))

    loops = [threading.Thread(target=lambda: asyncio.run(use())) for _ in range(6)]
    for loop in loops:
        loop.start()
    for loop in loops:
        loop.join(60)
    stop()
    for thread in all_started:
        thread.join(60)
        assert not thread.is_alive()
    assert served == [10] * 6
    assert len(all_started) == most


@pytest.mark.parametrize(("module", "shared"), [(workers, _with_workers), (writer, _with_writer)])
def test_a_call_that_is_queued_while_another_thread_closes_is_still_served(
    module: Any, shared: Callable[[], tuple[Call, Callable[[], None]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Meanwhile(SimpleQueue[Any]):
        """Lets another thread close the store in the last moment before a call is queued, if it can."""

        def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
            if item is not None:
                closing.start()
                closing.join(0.2)
            super().put(item)

    monkeypatch.setattr(module, "SimpleQueue", Meanwhile)
    call, stop = shared()
    closing = threading.Thread(target=stop)

    async def use() -> None:
        await asyncio.wait_for(call(), 10)

    asyncio.run(use())
    closing.join(60)
    assert not closing.is_alive()


def test_a_commit_after_the_end_is_refused() -> None:
    call, stop = _with_writer()
    stop()

    async def use() -> None:
        await call()

    with pytest.raises(StoreClosed):
        asyncio.run(use())
