"""Event loops that end while a store is at work, and a second loop afterwards: it works there, or says why not."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings

import pytest

from soak.grounds import fresh
from statestore import AsyncStateStore, Session, StateStore, StoreClosed, UserMessage

DURABLE = ("files", "sqlite", "postgres", "valkey")
LOCAL = ("memory", "files", "sqlite")


async def _opened(target: str) -> AsyncStateStore:
    store = await AsyncStateStore.open(target)
    await store.get_or_create_session("alice", "one")
    return store


@pytest.mark.parametrize("engine", DURABLE)
def test_a_loop_that_ends_while_tasks_write_loses_nothing_and_complains_of_nothing(engine: str) -> None:
    acknowledged: list[int] = []
    complaints: list[object] = []

    are_many = asyncio.Event()

    async def write(store: AsyncStateStore) -> None:
        while True:
            acknowledged.extend(await store.append("one", UserMessage("x")))
            if len(acknowledged) > 20:
                are_many.set()

    async def main(target: str) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        store = await _opened(target)
        tasks = [asyncio.create_task(write(store)) for _ in range(6)]
        await are_many.wait()
        assert not any(task.done() for task in tasks)

    with fresh(engine) as ground:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            asyncio.run(main(ground.target))
            gc.collect()
        assert complaints == []
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("statestore-loop")]
        with StateStore.open(ground.target) as store:
            assert set(acknowledged) <= {entry.seq for entry in store.timeline("one")}
            assert store.check() == []


@pytest.mark.parametrize("engine", LOCAL)
def test_a_local_store_goes_on_in_a_second_loop(engine: str) -> None:
    async def write(store: AsyncStateStore, session: Session) -> int:
        session.add_user_message("x")
        await store.save_session(session)
        return len(await store.timeline("one"))

    with fresh(engine) as ground:
        session = Session("alice", "one")
        store = asyncio.run(_unclosed(ground.target))
        assert [asyncio.run(write(store, session)) for _ in range(3)] == [1, 2, 3]
        asyncio.run(store.close())


async def _unclosed(target: str) -> AsyncStateStore:
    return await AsyncStateStore.open(target)


@pytest.mark.parametrize("engine", ["postgres", "valkey"])
def test_a_store_of_a_server_says_in_a_second_loop_that_it_belongs_to_the_first(engine: str) -> None:
    async def use(store: AsyncStateStore) -> None:
        for call in (store.list_sessions(), store.append("one", UserMessage("x")), store.timeline("one")):
            with pytest.raises(StoreClosed, match="another event loop"):
                await call
        await store.close()

    with fresh(engine) as ground:
        store = asyncio.run(_opened(ground.target))
        asyncio.run(use(store))
        with StateStore.open(ground.target) as again:
            assert again.timeline("one") == []


@pytest.mark.parametrize("engine", ["files", "sqlite"])
def test_a_loop_that_is_closed_under_its_calls_leaves_them_done_or_not(engine: str) -> None:
    with fresh(engine) as ground:
        loop = asyncio.new_event_loop()
        store = loop.run_until_complete(_opened(ground.target))

        async def begin() -> list[asyncio.Task[list[int]]]:
            tasks = [asyncio.create_task(store.append("one", UserMessage(str(n)), keys=[str(n)])) for n in range(8)]
            await asyncio.sleep(0)
            return tasks

        tasks = loop.run_until_complete(begin())
        for task in tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined] - that is ours, and not the store's
        loop.close()

        async def again() -> None:
            for number in range(8):
                await store.append("one", UserMessage(str(number)), keys=[str(number)])
            assert sorted(entry.record.content for entry in await store.timeline("one")) == list("01234567")  # type: ignore[union-attr]
            await store.close()

        asyncio.run(again())
        tasks.clear()
