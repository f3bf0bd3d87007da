"""Ctrl-C may come at any moment: nothing is stored twice, nothing is lost, and nobody waits for ever afterwards."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import statestore
from statestore import AsyncStateStore, Session, StateStore, StoreClosed, StoreUnavailable, UserMessage
from statestore.engine import SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite.turns import Turnstile
from statestore.host import PlainHost
from statestore.stored import SessionSummary

SOURCES = os.path.dirname(statestore.__file__), threading.__file__
"""Whose functions are interrupted: ours, and what Python itself makes of locks."""
PATIENCE = 30.0

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # a generator may be what is interrupted while it is collected
    "ignore:coroutine .* was never awaited:RuntimeWarning",
)


class Interrupt:
    """Raises `KeyboardInterrupt` in this thread, once, where a function is entered that ``is_due`` picks."""

    def __init__(self, is_due: Callable[[str], bool]) -> None:
        self._is_due = is_due
        self.has_come = False

    def _trace(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_ours = code.co_filename.startswith(SOURCES) and code.co_name != "__del__"
        if event == "call" and is_ours and self._is_due(code.co_qualname):
            sys.settrace(None)
            self.has_come = True
            raise KeyboardInterrupt

    @contextmanager
    def awaited(self) -> Iterator[None]:
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            yield
        except KeyboardInterrupt:
            assert self.has_come
        finally:
            sys.settrace(before)


def interrupted_in(name: str) -> Interrupt:
    return Interrupt(lambda entered: entered == name)


def interrupted_at(number: int) -> Interrupt:
    """At so many calls of our functions."""
    calls = iter(range(number, -1, -1))
    return Interrupt(lambda _: next(calls) == 0)


def in_time(work: Callable[[], object]) -> None:
    """Do something in another thread, which must not hang."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"


def told(store: StateStore, session_id: str = "s") -> list[str]:
    return [entry.record.content for entry in store.timeline(session_id)]  # type: ignore[union-attr]


# -- saving -------------------------------------------------------------------------------------------------------


def _save(store: StateStore, session: Session) -> None:
    store.save_session(session)


def _save_in_a_batch(store: StateStore, session: Session) -> None:
    with store.batch() as batch:
        batch.save_session(session)


def _fresh(_: StateStore, session: Session) -> None:
    session.add_user_message("a")
    session.add_agent_response("b")


def _longer(store: StateStore, session: Session) -> None:
    session.add_user_message("a")
    store.save_session(session)
    session.add_agent_response("b")


def _rewritten(store: StateStore, session: Session) -> None:
    for text in "axy":
        session.add_user_message(text)
    store.save_session(session)
    del session.user_messages[1:]
    session.add_agent_response("b")


@pytest.mark.parametrize("save", [_save, _save_in_a_batch])
@pytest.mark.parametrize("prepare", [_fresh, _longer, _rewritten])
def test_a_save_that_is_interrupted_anywhere_and_repeated_stores_each_message_once(
    tmp_path: Path, prepare: Callable[[StateStore, Session], None], save: Callable[[StateStore, Session], None]
) -> None:
    with StateStore.open(tmp_path / "state.db", durability="relaxed") as store:
        for number in range(1000):
            session = Session("alice", f"{number}")
            prepare(store, session)
            interrupt = interrupted_at(number)
            with interrupt.awaited():
                save(store, session)
            session.add_user_message("c")
            save(store, session)
            assert told(store, session.id) == ["a", "b", "c"], number
            assert [entry.seq for entry in session.timeline] == [entry.seq for entry in store.timeline(session.id)]
            session.user_messages.pop()
            session.add_user_message("d")
            save(store, session)  # this is a rewrite of what nobody else has touched
            assert told(store, session.id) == ["a", "b", "d"], number
            if not interrupt.has_come:
                break
        assert 50 < number < 999
        assert store.check() == []


@pytest.mark.parametrize("place", ["_ThreadTurn.__aexit__", "_ThreadTurn._is_taken", "_ThreadTurn.locked"])
def test_an_object_whose_save_was_interrupted_is_saved_by_others_once_its_thread_goes_on_or_ends(place: str) -> None:
    with StateStore.open(MemoryEngine()) as store:
        session = Session("alice", "s")

        def interrupted() -> None:
            with interrupted_in(place).awaited():
                store.save_session(session)

        in_time(interrupted)
        session.add_user_message("after one that ended")
        in_time(lambda: store.save_session(session))
        interrupted()
        session.add_user_message("after one of the same thread")
        store.save_session(session)
        session.add_user_message("after one that went on")
        in_time(lambda: store.save_session(session))
        assert told(store) == ["after one that ended", "after one of the same thread", "after one that went on"]


def test_an_object_is_saved_by_one_thread_at_a_time() -> None:
    session = Session("alice", "s")
    host = PlainHost(MemoryEngine())
    inside: list[int] = []
    most: list[int] = []

    async def work() -> None:
        for _ in range(200):
            async with host.turn(session):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    def run() -> None:
        with pytest.raises(StopIteration):
            work().send(None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
    assert len(most) == 800
    assert max(most) == 1


# -- turns among processes ----------------------------------------------------------------------------------------


def test_a_write_that_is_interrupted_anywhere_does_not_lock_others_out(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with (
        StateStore.open(path, durability="relaxed") as store,
        StateStore.open(f"sqlite:{path}?timeout=5", durability="relaxed") as other,
    ):
        store.get_or_create_session("alice", "s")
        for number in range(1000):
            interrupt = interrupted_at(number)
            with interrupt.awaited():
                store.append("s", UserMessage("interrupted"), keys=[f"{number}"])
            other.append("s", UserMessage("other"))
            store.append("s", UserMessage("repeated"), keys=[f"{number}"])
            if not interrupt.has_come:
                break
        assert 20 < number < 999
        assert len(told(store)) == 2 * (number + 1)


def test_who_is_interrupted_anywhere_while_waiting_for_a_turn_stands_in_nobodys_way(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    path = tmp_path / "state.db"
    path.touch()
    busy, patient = Turnstile(str(path), 5), Turnstile(str(path), 0.01)
    busy.open()
    patient.open()

    def wait() -> None:
        with pytest.raises(StoreUnavailable), patient.turn():
            pass

    with busy.turn():
        wait()  # from now on there is a thread that stands in line
    for number in range(1000):
        interrupt = interrupted_at(number)
        with busy.turn(), interrupt.awaited():
            wait()
        with busy.turn():
            pass
        if not interrupt.has_come:
            break
    assert 5 < number < 999
    patient.close()
    busy.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
        assert not thread.is_alive()


# -- closing ------------------------------------------------------------------------------------------------------


def test_closing_waits_for_a_prune_that_is_about_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    is_starting, may_start = threading.Event(), threading.Event()
    start = threading.Thread.start
    failures: list[BaseException] = []

    def start_when_let(thread: threading.Thread) -> None:
        if thread.name == "statestore-background":
            is_starting.set()
            may_start.wait(PATIENCE)
        start(thread)

    def close() -> None:
        try:
            store.close()
        except BaseException as error:  # noqa: BLE001 - looked at below
            failures.append(error)

    monkeypatch.setattr(threading.Thread, "start", start_when_let)
    store = StateStore.open(MemoryEngine())
    saving = threading.Thread(target=store.save_session_with_prune, args=(Session("alice", "s"),), daemon=True)
    saving.start()
    assert is_starting.wait(PATIENCE)
    closing = threading.Thread(target=close, daemon=True)
    closing.start()
    closing.join(0.1)  # one that does not wait is over by then
    may_start.set()
    for thread in (closing, saving):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert failures == []
    with pytest.raises(StoreClosed):
        store.count_sessions()


def test_closing_in_another_loop_waits_for_a_prune_and_goes_on_when_it_is_over() -> None:
    is_closing = threading.Event()

    class Listing(MemoryEngine):
        runs_in = "loop"

        async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
            await asyncio.to_thread(is_closing.wait, PATIENCE)
            return await super().list_sessions(query)

    async def close(store: AsyncStateStore) -> None:
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)  # by now it waits
        assert not closing.done()
        is_closing.set()
        await closing

    async def save_and_have_it_closed() -> None:
        store = await AsyncStateStore.open(Listing())
        await store.save_session_with_prune(Session("alice", "s"))
        thread = threading.Thread(target=lambda: asyncio.run(close(store)), daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join, PATIENCE)
        assert not thread.is_alive()
        with pytest.raises(StoreClosed):
            await store.count_sessions()

    asyncio.run(save_and_have_it_closed())


def test_closing_does_not_wait_for_a_prune_whose_loop_stands_still() -> None:
    async def save() -> AsyncStateStore:
        store = await AsyncStateStore.open(MemoryEngine())
        await store.save_session_with_prune(Session("alice", "s"))
        return store

    with asyncio.Runner() as runner:
        store = runner.run(save())
        thread = threading.Thread(target=lambda: asyncio.run(store.close()), daemon=True)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_a_store_whose_closing_is_interrupted_while_it_waits_is_closed() -> None:
    store = StateStore.open(MemoryEngine())
    with interrupted_in("PlainHost.drain").awaited():
        store.close()
    with pytest.raises(StoreClosed):
        store.count_sessions()
