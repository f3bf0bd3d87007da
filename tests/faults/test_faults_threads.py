"""No thread can be had, or the loop's own pool of threads is gone: an error of ours or success, and never a hang."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from faults.held_up import HeldUp
from soak.grounds import fresh
from statestore import AsyncStateStore, PruneConfig, Session, StateStore, StoreUnavailable, UserMessage
from statestore.engines.memory import MemoryEngine

ALL = ("memory", "files", "sqlite", "postgres", "valkey")


@contextmanager
def _no_threads() -> Iterator[None]:
    """While the block lasts, no thread begins: as in a container whose number of processes is used up."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    start = threading.Thread.start
    threading.Thread.start = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        threading.Thread.start = start


@pytest.mark.parametrize("engine", ["postgres", "valkey"])
def test_a_plain_store_of_a_server_needs_a_thread_and_says_so(engine: str) -> None:
    with fresh(engine) as ground:
        with _no_threads(), pytest.raises(StoreUnavailable, match="thread"):
            StateStore.open(ground.target)
        with StateStore.open(ground.target) as store:
            assert store.list_sessions() == []


@pytest.mark.parametrize("engine", ["files", "sqlite"])
def test_an_asynchronous_store_needs_a_thread_and_says_so(engine: str) -> None:
    async def run(target: str) -> None:
        with _no_threads(), pytest.raises(StoreUnavailable, match="thread"):
            await AsyncStateStore.open(target)
        async with AsyncStateStore.open(target) as store:
            if engine == "sqlite":
                with _no_threads(), pytest.raises(StoreUnavailable, match="thread"):
                    await store.get_or_create_session("alice", "one")  # its writer has a thread of its own
            await store.get_or_create_session("alice", "one")
            assert await store.session_exists("one")

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))


@pytest.mark.parametrize("engine", ["memory", "files", "sqlite"])
def test_what_was_saved_is_saved_though_the_prune_finds_no_thread(
    engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target) as store:
        old, new = Session("alice", "old"), Session("alice", "new")
        store.save_session(old)
        with _no_threads(), caplog.at_level(logging.WARNING, "statestore"):
            store.save_session_with_prune(new, PruneConfig(max_sessions=1))
        assert "could not begin" in caplog.text
        assert store.count_sessions() == 2
        new.add_user_message("the turn was given back")
        store.save_session_with_prune(new, PruneConfig(max_sessions=1))
        store.close()  # which waits for the prune, and not for a thread that never was
        if engine != "memory":
            with StateStore.open(ground.target) as again:
                assert [summary.id for summary in again.list_sessions()] == ["new"]


@pytest.mark.parametrize("engine", ALL)
def test_a_loop_whose_pool_of_threads_is_gone_does_not_stop_the_store(engine: str) -> None:
    async def run(target: str) -> None:
        async with AsyncStateStore.open(target) as store:
            await store.get_or_create_session("alice", "one")
            await asyncio.get_running_loop().shutdown_default_executor()
            await asyncio.gather(*(store.append("one", UserMessage(str(number))) for number in range(20)))
            assert len(await store.timeline("one")) == 20

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))


def test_a_call_that_a_thread_has_begun_is_waited_for_when_it_is_cancelled() -> None:
    async def run() -> None:
        engine = HeldUp(MemoryEngine())
        async with AsyncStateStore.open(engine) as store:  # type: ignore[arg-type]
            engine.is_held_up = True
            task = asyncio.create_task(store.save_session(Session("alice", "one")))
            await asyncio.to_thread(engine.is_there.wait)
            for _ in range(5):
                task.cancel()
                await asyncio.sleep(0.01)
                assert not task.done(), "who cancelled it meets it half done"
            engine.may_go.set()
            await asyncio.wait([task])
            assert task.cancelled()
            assert await store.session_exists("one")

    asyncio.run(run())


@pytest.mark.parametrize("engine", ["postgres", "valkey"])
def test_a_server_whose_name_can_no_longer_be_looked_up_is_told(engine: str) -> None:
    async def run(target: str) -> None:
        async with AsyncStateStore.open(target) as store:
            assert await store.list_sessions() == []
        await asyncio.to_thread(int)
        await asyncio.get_running_loop().shutdown_default_executor()
        with pytest.raises(StoreUnavailable, match="shutdown"):
            await AsyncStateStore.open(target)

    with fresh(engine) as ground:
        asyncio.run(run(ground.target.replace("127.0.0.1", "localhost")))


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("engine", ["memory", "files", "sqlite"])
def test_a_store_is_neither_pickled_nor_copied(engine: str, duplicate: Callable[[object], object]) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target) as store:
        for each in (store, store.for_user("alice")):
            with pytest.raises(TypeError, match="open it where it is needed"):
                duplicate(each)
        store.get_or_create_session("alice", "one")  # what a half made copy let go of would be missing here


def test_an_asynchronous_store_is_neither_pickled_nor_copied() -> None:
    async def run() -> None:
        async with AsyncStateStore.open("memory:") as store:
            for each in (store, store.for_user("alice")):
                with pytest.raises(TypeError, match="open it where it is needed"):
                    pickle.dumps(each)

    asyncio.run(run())
