"""Engines that live in an event loop, used from plain code; and how such engines commit in groups."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Sequence

import pytest

from statestore import Session, StateStore, StoreClosed, StoreUnavailable
from statestore.engine import Change, DeleteSession, Outcome
from statestore.engines.grouping import MOST, Grouping
from statestore.engines.memory import MemoryEngine


class SlowEngine(MemoryEngine):
    """Commits when it is let."""

    runs_in = "loop"

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.may_commit = threading.Event()
        self.was_cancelled = False
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        self.loops.add(asyncio.get_running_loop())
        self.is_asked.set()
        try:
            await asyncio.to_thread(self.may_commit.wait)
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return await super().commit(batch)


def loop_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "statestore-loop"]


def test_threads_share_one_loop_and_closing_ends_it() -> None:
    engine = SlowEngine()
    engine.may_commit.set()
    with StateStore.open(engine) as store:
        threads = [threading.Thread(target=store.save_session, args=(Session.new("alice"),)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.count_sessions() == 8
        assert len(engine.loops) == 1
        assert len(loop_threads()) == 1
    assert loop_threads() == []
    with pytest.raises(StoreClosed):
        store.count_sessions()
    store.close()


def test_a_store_that_nobody_closed_leaves_no_thread() -> None:
    store = StateStore.open(SlowEngine())
    assert store.count_sessions() == 0
    assert loop_threads()
    del store
    gc.collect()
    assert loop_threads() == []


def test_an_interrupted_caller_cancels_its_write_and_waits_for_it() -> None:
    engine = SlowEngine()

    def interrupt() -> None:
        engine.is_asked.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with StateStore.open(engine) as store:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            store.save_session(Session.with_id("alice", "s"))
        thread.join()
        assert engine.was_cancelled
        engine.may_commit.set()
        assert not store.session_exists("s")
        store.save_session(Session.with_id("alice", "s"))
        assert store.session_exists("s")


def test_calls_that_meet_a_closing_store_are_refused_and_never_hang() -> None:
    class Quick(MemoryEngine):
        runs_in = "loop"

    failures: list[BaseException] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(60):
            store = StateStore.open(Quick())

            def ask(store: StateStore = store) -> None:
                try:
                    while True:
                        store.count_sessions()
                except StoreClosed:
                    return
                except BaseException as error:  # noqa: BLE001 - looked at below
                    failures.append(error)

            threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
            for thread in threads:
                thread.start()
            store.close()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive(), "a call hangs"
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


def test_a_child_process_is_told_to_open_its_own() -> None:
    with StateStore.open(SlowEngine()) as store:
        child = os.fork()
        if not child:
            try:
                store.count_sessions()
            except StoreClosed:
                os._exit(7)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert store.count_sessions() == 0


class Made:
    """Notes the groups it is given; makes them when it is let, unless told to fail."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.made: list[str] = []
        self.may_go = asyncio.Event()
        self.begun = asyncio.Event()
        self.error: Exception | None = None

    async def __call__(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        self.groups.append(len(batches))
        self.begun.set()
        await self.may_go.wait()
        if self.error:
            raise self.error
        self.made += [change.id for batch in batches for change in batch if isinstance(change, DeleteSession)]
        return [[Outcome(None)] if batch else StoreUnavailable("empty") for batch in batches]


def test_what_waits_while_a_group_is_made_is_the_next_group() -> None:
    async def run() -> None:
        made = Made()
        grouping = Grouping(made)
        first = asyncio.create_task(grouping.commit([DeleteSession("first")]))
        await made.begun.wait()
        others = [asyncio.create_task(grouping.commit([DeleteSession(str(n))])) for n in range(MOST + 3)]
        refused = asyncio.create_task(grouping.commit([]))
        await asyncio.sleep(0)
        made.may_go.set()
        assert await first == [Outcome(None)]
        assert await asyncio.gather(*others) == [[Outcome(None)]] * len(others)
        with pytest.raises(StoreUnavailable, match="empty"):
            await refused
        assert made.groups == [1, MOST, 4]
        assert made.made == ["first", *(str(n) for n in range(MOST + 3))]
        await grouping.close()
        with pytest.raises(StoreClosed):
            await grouping.commit([])

    asyncio.run(run())


def test_a_batch_that_waits_can_be_taken_back_and_one_under_way_cannot() -> None:
    async def run() -> None:
        made = Made()
        grouping = Grouping(made)
        under_way = asyncio.create_task(grouping.commit([DeleteSession("under way")]))
        await made.begun.wait()
        waiting = asyncio.create_task(grouping.commit([DeleteSession("taken back")]))
        await asyncio.sleep(0)
        waiting.cancel()
        under_way.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert waiting.cancelled()
        assert not under_way.done()
        under_way.cancel()
        made.may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await under_way
        assert made.made == ["under way"]
        await grouping.close()

    asyncio.run(run())


def test_a_group_that_fails_is_told_to_all_who_wait_and_the_next_one_is_made() -> None:
    async def run() -> None:
        made = Made()
        made.error = StoreUnavailable("gone")
        made.may_go.set()
        grouping = Grouping(made)
        results = await asyncio.gather(*(grouping.commit([]) for _ in range(3)), return_exceptions=True)
        assert results == [made.error] * 3
        made.error = None
        assert await grouping.commit([DeleteSession("next")]) == [Outcome(None)]
        await grouping.close()

    asyncio.run(run())


def test_a_batch_whose_turn_comes_too_late_is_refused_and_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        made = Made()
        grouping = Grouping(made, patience=60)
        under_way = asyncio.create_task(grouping.commit([DeleteSession("under way")]))
        await made.begun.wait()
        late = asyncio.create_task(grouping.commit([DeleteSession("late")]))
        await asyncio.sleep(0)
        later = asyncio.get_running_loop().time() + 60
        monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: later)
        in_time = asyncio.create_task(grouping.commit([DeleteSession("in time")]))
        await asyncio.sleep(0)
        made.may_go.set()
        with pytest.raises(StoreUnavailable, match="more than 60 s: nothing was written"):
            await late
        assert await under_way == await in_time == [Outcome(None)]
        assert made.made == ["under way", "in time"]
        await grouping.close()

    asyncio.run(run())
