"""Ctrl-C may come at any moment: nothing is stored twice, nothing is lost, and nobody waits for ever afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import statestore
from statestore import AsyncStateStore, Session, StateStore, StoreClosed, StoreUnavailable, UserMessage
from statestore.engine import SessionQuery
from statestore.engines.files.temporary import TemporaryFiles
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite.turns import Turnstile
from statestore.host import PlainHost
from statestore.stored import SessionSummary

OURS = os.path.dirname(statestore.__file__)
SOURCES = OURS, threading.__file__, contextlib.__file__
"""Whose functions are interrupted: ours, and what Python itself makes of our locks and blocks."""
PATIENCE = 30.0

pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning",  # a generator may be what is interrupted while it is collected
    "ignore:coroutine .* was never awaited:RuntimeWarning",
)


@pytest.fixture(autouse=True)
def _collect_what_was_interrupted() -> Iterator[None]:
    """Here, where it may complain, and not in the midst of another test."""
    yield
    gc.collect()


class Interrupt:
    """Raises `KeyboardInterrupt` in this thread, once, where ``is_due`` says so.

    That is asked where Python itself looks for signals: where a function is entered, and where a call of one that is
    written in C is over. What was interrupted is kept: nothing may depend on it being collected.
    """

    def __init__(self, is_due: Callable[[str, str], bool]) -> None:
        self._is_due = is_due
        self._hook = self._profile  # kept: Python 3.11 uses it once more after it has dropped it
        self.raised: BaseException | None = None
        self.has_come = False

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        if self.has_come or event not in ("call", "c_return") or not _is_ours(frame):
            return
        if self._is_due(event, frame.f_code.co_qualname):
            self.has_come = True
            raise KeyboardInterrupt

    def __enter__(self) -> None:
        sys.setprofile(self._hook)

    def __exit__(self, _: object, raised: BaseException | None, __: object) -> bool:
        sys.setprofile(None)
        self.raised = raised
        return self.has_come and isinstance(raised, KeyboardInterrupt)

    def forget(self) -> None:
        """Let go of what was interrupted."""
        self.raised = None


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    if not file.startswith(SOURCES) or frame.f_code.co_name == "__del__":
        return False
    return file.startswith(OURS) or (frame.f_back is not None and _is_ours(frame.f_back))


def interrupted_in(name: str) -> Interrupt:
    return Interrupt(lambda event, entered: event == "call" and entered == name)


def interrupted_at(number: int) -> Interrupt:
    """At so many places."""
    places = iter(range(number, -1, -1))
    return Interrupt(lambda _, __: next(places) == 0)


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
            with interrupt:
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


@pytest.mark.parametrize("place", ["_ThreadTurn.__aexit__", "_ThreadTurn._took_turn", "_ThreadTurn.locked"])
def test_an_object_whose_save_was_interrupted_is_saved_by_others_once_its_thread_goes_on_or_ends(place: str) -> None:
    with StateStore.open(MemoryEngine()) as store:
        session = Session("alice", "s")

        def interrupted() -> None:
            with interrupted_in(place):
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
            with interrupt:
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
        with busy.turn(), interrupt:
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


def _in_a_batch(store: StateStore) -> None:
    with store.batch() as batch:
        batch.append("s", UserMessage("a"))
        batch.save_markdown("notes", "first", "a")
        batch.save_markdown("notes", "second", "a")


def _held_locks(directory: Path) -> list[str]:
    """The lock files of a store that somebody holds."""
    held = list[str]()
    for path in (directory / ".statestore" / "locks").iterdir():
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(path.name)
    return held


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda store: store.append("s", UserMessage("a")), id="append"),
        pytest.param(_in_a_batch, id="batch"),
        pytest.param(lambda store: store.list_sessions(), id="list_sessions"),
        pytest.param(lambda store: store.list_category("notes"), id="list_category"),
        pytest.param(lambda store: store.list_categories(), id="list_categories"),
        pytest.param(lambda store: store.search_sessions("a"), id="search_sessions"),
        pytest.param(lambda store: store.check(repair=True), id="repair"),
        pytest.param(lambda store: StateStore.open(store.url).close(), id="open and close"),
    ],
)
def test_files_a_call_that_is_interrupted_anywhere_keeps_no_lock(
    tmp_path: Path, call: Callable[[StateStore], object]
) -> None:
    with StateStore.open(f"file:{tmp_path}", durability="relaxed") as store:
        store.get_or_create_session("alice", "s")
        _in_a_batch(store)
        for number in range(10000):
            interrupt = interrupted_at(number)
            with interrupt:
                call(store)
            assert _held_locks(tmp_path) == [], number
            if not interrupt.has_come:
                break
        assert 20 < number < 9999


@pytest.mark.parametrize("options", ["", "?read_only=true"])
def test_files_a_search_that_is_interrupted_anywhere_does_not_lock_others_out(tmp_path: Path, options: str) -> None:
    with StateStore.open(f"file:{tmp_path}", durability="relaxed") as store:
        store.get_or_create_session("alice", "s")
        store.append("s", UserMessage("a"))
    with StateStore.open(f"file:{tmp_path}{options}") as store:
        for number in range(10000):
            interrupt = interrupted_at(number)
            with interrupt:
                store.search_sessions("a")
            in_time(lambda: store.search_sessions("a"))
            if not interrupt.has_come:
                break
        assert 20 < number < 9999


def _amid_a_save(store: StateStore, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The locks that are held while a document is saved, before and after something is done amid that."""
    prepare = TemporaryFiles.prepare
    directory = Path(store.url.removeprefix("file:"))
    held = list[list[str]]()

    def act_and_prepare(*given: Any) -> Any:
        held.append(_held_locks(directory))
        act()
        held.append(_held_locks(directory))
        return prepare(*given)

    with monkeypatch.context() as patch:
        patch.setattr(TemporaryFiles, "prepare", act_and_prepare)
        store.save_markdown("notes", "first", "a")
    return held


def test_files_a_call_amid_another_one_takes_no_lock_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StateStore.open(f"file:{tmp_path}", durability="relaxed") as store:
        before, after = _amid_a_save(store, store.list_sessions, monkeypatch)  # as a signal handler may
        assert before == after != []


def test_files_what_is_left_of_an_interrupted_call_takes_no_lock_from_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateStore.open(f"file:{tmp_path}", durability="relaxed") as store:
        for number in range(1000):
            interrupt = interrupted_at(number)
            with interrupt:
                store.list_categories()
            before, after = _amid_a_save(store, interrupt.forget, monkeypatch)
            assert before == after != [], number
            if not interrupt.has_come:
                break
        assert 20 < number < 999


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
    with interrupted_in("PlainHost.drain"):
        store.close()
    with pytest.raises(StoreClosed):
        store.count_sessions()
