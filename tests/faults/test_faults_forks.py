"""Forks beside a store that is at work, on the engines whose own tests do not have that: nobody hangs or is misled."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from children import Child, Tell, together
from faults.held_up import HeldUp
from soak.grounds import fresh
from statestore import AsyncStateStore, SessionConflict, StateStore, StoreClosed, UserMessage
from statestore.engines.memory import MemoryEngine
from words import user_words

SERVERS = ("postgres", "valkey")


@contextmanager
def _busy(work: Callable[[], object], threads: int = 3) -> Iterator[None]:
    """While the block lasts, threads do something without end."""
    is_over = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            while not is_over.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - raised below
            failures.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in running:
            thread.join()
    assert failures == []


def test_a_store_in_memory_goes_on_in_parent_and_child_each_with_its_own() -> None:
    with StateStore.open("memory:") as store:
        store.get_or_create_session("alice", "one")

        def child(tell: Tell) -> None:
            for _ in range(10):
                store.append("one", UserMessage("child"))
            tell(str(len(store.timeline("one"))))

        with _busy(lambda: store.save_json("notes", "one", [1, 2, 3])):
            for _ in range(10):
                ended = Child(child).ended()
                assert (ended.told, ended.error) == (["10"], "")
        assert user_words(store, "one") == []


@pytest.mark.parametrize("engine", SERVERS)
def test_a_child_forked_beside_busy_threads_is_told_to_open_its_own_and_can(engine: str) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target) as store:
        store.get_or_create_session("alice", "one")

        def child(tell: Tell) -> None:
            for call in (store.list_sessions, lambda: store.append("one", UserMessage("inherited"))):
                with pytest.raises(StoreClosed, match="fork"):
                    call()
            store.close()
            with StateStore.open(ground.target) as own:
                tell(str(own.append("one", UserMessage("child"))[0]))

        acknowledged: list[int] = []
        with _busy(lambda: acknowledged.extend(store.append("one", UserMessage("parent")))):
            for _ in range(3):
                ended = Child(child).ended()
                assert ended.error == ""
                acknowledged += map(int, ended.told)
        assert sorted(acknowledged) == [entry.seq for entry in store.timeline("one")]
        assert sorted(set(user_words(store, "one"))) == ["child", "parent"]


@pytest.mark.parametrize("engine", SERVERS)
def test_an_asynchronous_store_says_in_a_child_that_it_was_opened_before_the_fork(engine: str) -> None:
    async def run(target: str) -> None:
        async with AsyncStateStore.open(target) as store:
            await store.get_or_create_session("alice", "one")

            async def use() -> None:
                for call in (store.list_sessions(), store.append("one", UserMessage("inherited"))):
                    with pytest.raises(StoreClosed, match=r"fork|another event loop"):
                        await call
                await store.close()

            def child(_: Tell) -> None:
                asyncio._set_running_loop(None)
                asyncio.run(use())

            ended = Child(child).ended()
            assert ended.error == ""
            await store.append("one", UserMessage("parent"))
            assert len(await store.timeline("one")) == 1

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))


@pytest.mark.parametrize("engine", ["files", "sqlite"])
def test_a_thread_that_forks_while_others_commit_gets_a_child_that_works(engine: str) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target, durability="relaxed") as store:
        store.get_or_create_session("alice", "one")
        acknowledged: list[int] = []
        failures: list[str] = []

        def fork_and_wait() -> None:
            for _ in range(5):
                ended = Child(lambda tell: tell(str(store.append("one", UserMessage("child"))[0]))).ended()
                acknowledged.extend(map(int, ended.told))
                failures.append(ended.error)

        def write() -> None:
            acknowledged.extend(store.append("one", UserMessage("parent")))
            store.search_sessions("child")

        with _busy(write, threads=2):
            forking = threading.Thread(target=fork_and_wait)
            forking.start()
            forking.join()
        assert failures == [""] * 5
        assert sorted(acknowledged) == [entry.seq for entry in store.timeline("one")]
        assert store.check() == []


def test_a_child_that_is_forked_while_a_thread_searches_can_search() -> None:
    """What SQLite knows of the locks of an open connection would come along, and never go away."""
    with fresh("files") as ground, StateStore.open(ground.target, durability="relaxed") as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("a ferry"))
        assert len(store.search_sessions("ferry")) == 1
        has_begun, forks = threading.Event(), threading.Event()
        os.register_at_fork(before=forks.set)

        def hold(connection: sqlite3.Connection, _: object) -> None:
            connection.execute("BEGIN IMMEDIATE")
            has_begun.set()
            assert forks.wait(30)
            connection.execute("ROLLBACK")

        searching = threading.Thread(target=lambda: store._sessions._engine._log.use(hold))  # type: ignore[attr-defined]
        searching.start()
        assert has_begun.wait(30)

        def child(tell: Tell) -> None:
            store.append("one", UserMessage("another ferry"))
            tell(str(len(store.search_sessions("ferry"))))

        ended = Child(child).ended()
        searching.join()
        assert (ended.error, ended.told) == ("", ["2"])
        assert len(store.search_sessions("ferry")) == 2


def test_an_object_that_a_thread_of_the_parent_is_saving_is_not_saved_in_the_child_and_nobody_hangs() -> None:
    engine = HeldUp(MemoryEngine())
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        session = store.get_or_create_session("alice", "one")
        session.add_user_message("from the parent")
        engine.is_held_up = True
        saving = threading.Thread(target=lambda: store.save_session(session), daemon=True)
        saving.start()
        engine.is_there.wait()

        def child(tell: Tell) -> None:
            with pytest.raises(SessionConflict, match="process"):
                store.save_session(session)
            tell("told")

        try:
            ended = Child(child).ended()
        finally:
            engine.may_go.set()
            saving.join()
        assert (ended.told, ended.error) == (["told"], "")
        assert user_words(store, "one") == ["from the parent"]


def _append(target: str) -> int:
    with StateStore.open(target) as store:
        return store.append("one", UserMessage(str(os.getpid())))[0]


@pytest.mark.parametrize("engine", ["files", "sqlite", "postgres", "valkey"])
def test_a_spawned_process_opens_the_store_by_its_url(engine: str) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target) as store:
        store.get_or_create_session("alice", "one")
        seqs = together("spawn", _append, [(ground.target,)] * 2)
        assert sorted(seqs) == [entry.seq for entry in store.timeline("one")] == [1, 2]
