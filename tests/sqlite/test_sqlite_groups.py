"""Group commit: what waits goes together, and nobody's trouble is anybody else's."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from sqlite_hooks import hooked, said, seqs, verdict

from contestants import in_threads
from statestore import AsyncStateStore, Session, StateStore, StateStoreError, StoreClosed, StoreUnavailable, UserMessage
from statestore.engine import ChangeSession, NewRecord, NewSession, Outcome, PreconditionFailed, PutDocument, Requires
from statestore.engines.sqlite import SqliteEngine, gathering
from statestore.host import step

NOW = "2026-01-31T12:00:00Z"


def _body(text: str) -> bytes:
    return b'{"content":"%b","timestamp":"%b"}' % (text.encode(), NOW.encode())


def _append(session_id: str, *texts: str, requires: Requires = Requires()) -> ChangeSession:  # noqa: B008 - frozen
    records = tuple(NewRecord("user", _body(text), 0) for text in texts)
    return ChangeSession(session_id, NOW, requires=requires, append=records)


def _ownerless(session_id: str) -> ChangeSession:
    """A new session of nobody, which only the database itself refuses."""
    records = (NewRecord("user", _body("a"), 0),)
    return ChangeSession(session_id, NOW, create=NewSession(cast("str", None), NOW), append=records)


@pytest.fixture
def engine(database: Path) -> Iterator[SqliteEngine]:
    with StateStore.open(database) as store:
        for name in ("one", "two"):
            store.get_or_create_session("alice", name)
    engine = SqliteEngine(database)
    step(engine.open())
    yield engine
    step(engine.close())


def _is_done(result: object) -> bool:
    return isinstance(result, list) and all(isinstance(outcome, Outcome) for outcome in result)


def test_sixty_four_threads_need_far_fewer_transactions_than_appends(database: Path) -> None:
    names = [str(number) for number in range(64)]
    begun: list[threading.Thread] = []

    def at(statement: str) -> None:
        writer = threading.current_thread()
        if statement == "BEGIN IMMEDIATE":
            begun.append(writer)
        elif statement == "COMMIT" and begun == [writer] != [threading.main_thread()]:
            _until(lambda: _waiting(store) == len(names) - 1)  # who commits first takes so long that all others wait

    with hooked(before=at), StateStore.open(database) as store:
        store.get_or_create_session("alice", "shared")
        told: list[int] = []
        for _ in range(20):
            begun.clear()
            in_threads(lambda name: told.extend(store.append("shared", UserMessage(name))), names)
            assert len(begun) < len(names) / 4
        assert sorted(told) == seqs(store, "shared") == list(range(1, 1281))


def test_whose_batch_is_done_is_woken_and_need_not_look_up(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "NAP", 3600.0)
    names = [str(number) for number in range(64)]

    def append_a_few(name: str) -> None:
        for turn in range(10):
            store.append("shared", UserMessage(f"{name}:{turn}"))

    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "shared")
        for _ in range(20):
            threads = [threading.Thread(target=append_a_few, args=(name,), daemon=True) for name in names]
            for thread in threads:
                thread.start()
            deadline = time.monotonic() + 60
            for thread in threads:
                thread.join(max(0.0, deadline - time.monotonic()))
            assert not any(thread.is_alive() for thread in threads)
        assert len(seqs(store, "shared")) == 20 * 640


def test_sixty_four_tasks_need_far_fewer_transactions_than_appends(database: Path) -> None:
    begun: list[str] = []

    def count(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            begun.append(statement)

    async def contest() -> None:
        async with AsyncStateStore.open(database) as store:
            await store.get_or_create_session("alice", "shared")
            begun.clear()

            async def append(name: int) -> None:
                for turn in range(10):
                    await store.append("shared", UserMessage(f"{name}:{turn}"))

            await asyncio.gather(*map(append, range(64)))
            assert len(await store.timeline("shared")) == 640

    with hooked(before=count):
        asyncio.run(contest())
    assert len(begun) < 640 / 4


def test_a_failed_precondition_takes_no_other_batch_down(engine: SqliteEngine, store: StateStore) -> None:
    missing, first, stale, put, second = step(
        engine.commit_group(
            [
                [_append("missing", "no", requires=Requires(present=True))],
                [_append("one", "a", "b")],
                [_append("one", "no", requires=Requires(version="stale")), PutDocument("notes", "no", "md", b"no")],
                [PutDocument("notes", "yes", "md", b"yes")],
                [_append("one", "c"), _append("two", "d")],
            ]
        )
    )
    assert isinstance(missing, PreconditionFailed)
    assert isinstance(stale, PreconditionFailed)
    assert _is_done(first)
    assert _is_done(put)
    assert _is_done(second)
    assert said(store, "one") == ["a", "b", "c"]
    assert said(store, "two") == ["d"]
    assert store.list_category("notes") == ["yes"]
    assert store.check() == []


def test_a_failed_precondition_costs_no_transaction_of_its_own(database: Path, engine: SqliteEngine) -> None:
    """The batches beside it still go together: else anybody who conflicts often would slow down everybody."""
    begun: list[str] = []

    def count(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            begun.append(statement)

    with hooked(before=count):
        counted = SqliteEngine(database)
        step(counted.open())
        begun.clear()
        batches = [[_append("one", "a")], [_append("missing", "no", requires=Requires(present=True))]] * 5
        results = step(counted.commit_group(batches))
        step(counted.close())
    assert [_is_done(result) for result in results] == [True, False] * 5
    assert len(begun) == 1


def test_a_batch_that_the_database_refuses_takes_no_other_down(engine: SqliteEngine, store: StateStore) -> None:
    first, refused, again, second = step(
        engine.commit_group([[_append("one", "a")], [_ownerless("new")], [_ownerless("newer")], [_append("two", "b")]])
    )
    assert _is_done(first)
    assert _is_done(second)
    for result in (refused, again):
        assert isinstance(result, StateStoreError)
        assert result.__cause__ is not None
    assert said(store, "one") == ["a"]
    assert said(store, "two") == ["b"]
    assert not store.session_exists("new")
    assert store.check() == []
    with pytest.raises(StateStoreError):
        step(engine.commit([_ownerless("new")]))
    assert _is_done(step(engine.commit([_append("one", "c")])))


HOSTILE: dict[str, Callable[[], ChangeSession]] = {
    "a body that is no text": lambda: ChangeSession("one", NOW, append=(NewRecord("user", b"\xff", 0),)),
    "a field that is none": lambda: ChangeSession("one", NOW, set_fields={"nonsense": "x"}),
    "a text that is none": lambda: ChangeSession("one", NOW, set_fields={"title": "\ud800"}),
    "a number beyond all": lambda: ChangeSession("one", NOW, truncate_after=2**70),
    "a number below all": lambda: ChangeSession("one", NOW, truncate_after=-(2**70)),
    "a sequence number beyond all": lambda: ChangeSession(
        "new", NOW, create=NewSession("alice", NOW), append=(NewRecord("user", _body("x"), 0, seq=2**70),)
    ),
    "a moment that is none": lambda: ChangeSession("one", "yesterday"),
    "metadata that is none": lambda: ChangeSession("one", NOW, set_metadata={"a": b"\xff"}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_batch_that_makes_no_sense_takes_no_other_down(what: str, engine: SqliteEngine, store: StateStore) -> None:
    """Whatever is wrong with it: the others are made, once, and know it."""
    results = step(engine.commit_group([[_append("two", "a")], [HOSTILE[what]()], [_append("two", "b")]]))
    assert _is_done(results[0])
    assert _is_done(results[2])
    assert said(store, "two") == ["a", "b"]


def test_a_rewind_to_a_number_beyond_all_is_no_trouble(store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("hello"))
    assert store.rewind_session("one", to=2**70) == []
    assert said(store, "one") == ["hello"]


# -- interrupted in the middle ----------------------------------------------------------------------------------------


def _waiting(store: StateStore) -> int:
    """How many threads wait for somebody to commit for them."""
    engine: Any = store._store._engine
    return len(engine._writer._gathering._waiting)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.001)


class Scene:
    """A first thread that is held in its commit, so that whoever comes meanwhile waits, and is one group."""

    def __init__(self, store: StateStore) -> None:
        self.store = store
        self.is_there, self.may_go = threading.Event(), threading.Event()
        self.results: dict[str, list[int] | BaseException] = {}
        self.threads: list[threading.Thread] = []

    def hold(self, statement: str) -> None:
        if statement == "COMMIT" and threading.current_thread().name == "first" and not self.is_there.is_set():
            if self.is_writing:
                self.is_there.set()
                assert self.may_go.wait(30)
        elif statement == "BEGIN IMMEDIATE" and threading.current_thread().name == "first":
            self.is_writing = True

    is_writing = False

    def start(self, name: str, *others: str) -> None:
        def append(own: str) -> None:
            try:
                self.results[own] = self.store.append("shared", UserMessage(own))
            except BaseException as error:  # noqa: BLE001 - looked at by the test
                self.results[own] = error

        for own in (name, *others):
            thread = threading.Thread(name=own, target=append, args=(own,))
            self.threads.append(thread)
            thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive(), "a thread hangs"


@contextmanager
def _scene(database: Path, before: Callable[[str], None], after: Callable[[str], None]) -> Iterator[Scene]:
    scenes: list[Scene] = []

    def at(statement: str) -> None:
        for scene in scenes:
            scene.hold(statement)
        before(statement)

    with hooked(before=at, after=after), StateStore.open(database) as store:
        store.get_or_create_session("alice", "shared")
        scenes.append(Scene(store))
        scenes[0].start("first")
        assert scenes[0].is_there.wait(30)
        yield scenes[0]
        scenes[0].join()


FOLLOWERS = [f"follower-{number}" for number in range(8)]
POINTS = [
    (when, point)
    for when in ("before", "after")
    for point in ("BEGIN IMMEDIATE", "INSERT INTO records", "UPDATE sessions", "COMMIT")
]


@pytest.mark.parametrize(("when", "point"), POINTS)
def test_an_interrupted_leader_leaves_the_appends_of_others_done_once(
    when: str, point: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Control-C in the thread that commits for all. The others are woken, and need not look up."""
    monkeypatch.setattr(gathering, "NAP", 3600.0)
    interrupted: list[str] = []
    leads = threading.Event()

    def interrupt(statement: str) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and leads.is_set() and not interrupted and statement.startswith(point):
            interrupted.append(statement)
            signal.raise_signal(signal.SIGINT)

    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    hooks = (interrupt, nothing) if when == "before" else (nothing, interrupt)
    with _scene(database, *hooks) as scene:

        def others() -> None:
            _until(lambda: _waiting(scene.store) == 1)  # ours, which is to lead
            scene.start(*FOLLOWERS)
            _until(lambda: _waiting(scene.store) == 1 + len(FOLLOWERS))
            leads.set()
            scene.may_go.set()

        helper = threading.Thread(target=others)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            scene.store.append("shared", UserMessage("leader"))
        helper.join()
        scene.join()
        counts = Counter(said(scene.store, "shared"))
        assert interrupted
        assert {name: counts[name] for name in ("first", *FOLLOWERS)} == dict.fromkeys(("first", *FOLLOWERS), 1)
        assert counts["leader"] <= 1
        told = [result for result in scene.results.values() if isinstance(result, list)]
        assert len(told) == 1 + len(FOLLOWERS), scene.results
        numbers = seqs(scene.store, "shared")
        assert {seq for (seq,) in told} <= set(numbers)
        assert scene.store.append("shared", UserMessage("and on")) == [numbers[-1] + 1]
        assert scene.store.check() == []
    assert verdict(database) == "ok"


def test_an_interrupted_follower_leaves_all_others_done_once(database: Path) -> None:
    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    main = threading.main_thread().ident
    assert main is not None
    with _scene(database, nothing, nothing) as scene:

        def others() -> None:
            scene.start(*FOLLOWERS)
            _until(lambda: _waiting(scene.store) == 1 + len(FOLLOWERS))
            signal.pthread_kill(main, signal.SIGINT)
            _until(lambda: _waiting(scene.store) == len(FOLLOWERS))
            scene.may_go.set()

        helper = threading.Thread(target=others)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            scene.store.append("shared", UserMessage("interrupted"))
        helper.join()
        scene.join()
        assert sorted(said(scene.store, "shared")) == ["first", *FOLLOWERS], "it was never begun, and nobody else lost"
        assert all(isinstance(result, list) for result in scene.results.values())


def test_who_is_interrupted_while_another_makes_its_batch_may_save_again(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interrupt is told when it is known what became of the batch, so that the next save finds it."""
    monkeypatch.setattr(gathering, "NAP", 3600.0)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(statement: str) -> None:
        if statement == "COMMIT" and threading.current_thread().name == "leader":
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.3)  # if it gave up now, it would look, find nothing, and save again

    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    with _scene(database, interrupt, nothing) as scene:
        session = Session.with_id("alice", "mine")
        session.add_user_message("once")
        scene.start("leader")
        _until(lambda: _waiting(scene.store) == 1)

        def release() -> None:
            _until(lambda: _waiting(scene.store) == 2)
            scene.may_go.set()

        helper = threading.Thread(target=release)
        helper.start()
        with pytest.raises(KeyboardInterrupt):
            scene.store.save_session(session)
        scene.store.save_session(session)
        helper.join()
        scene.join()
        assert said(scene.store, "mine") == ["once"]


class TimeIsUp(Exception):
    """What a program's own handler raises."""


@pytest.mark.parametrize("error", [TimeIsUp, TimeoutError])
@pytest.mark.parametrize(("when", "point"), POINTS)
def test_what_a_handler_of_signals_raises_is_the_callers_and_makes_nothing_twice(
    when: str, point: str, error: type[Exception], database: Path
) -> None:
    leads = threading.Event()
    raised: list[str] = []

    def time_is_up(*_: object) -> None:
        raise error("time is up")

    def ring(statement: str) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and leads.is_set() and not raised and statement.startswith(point):
            raised.append(statement)
            signal.raise_signal(signal.SIGALRM)

    before = signal.signal(signal.SIGALRM, time_is_up)
    nothing: Callable[[str], None] = lambda _: None  # noqa: E731
    with _scene(database, *((ring, nothing) if when == "before" else (nothing, ring))) as scene:

        def others() -> None:
            _until(lambda: _waiting(scene.store) == 1)  # ours, which is to lead
            scene.start(*FOLLOWERS)
            _until(lambda: _waiting(scene.store) == 1 + len(FOLLOWERS))
            leads.set()
            scene.may_go.set()

        helper = threading.Thread(target=others)
        helper.start()
        with pytest.raises(error, match="time is up"):
            scene.store.append("shared", UserMessage("leader"))
        helper.join()
        scene.join()
        signal.signal(signal.SIGALRM, before)
        assert all(isinstance(result, list) for result in scene.results.values()), scene.results
        counts = Counter(said(scene.store, "shared"))
        assert {name: counts[name] for name in ("first", *FOLLOWERS)} == dict.fromkeys(("first", *FOLLOWERS), 1)
        assert counts["leader"] == (when == "after" and point == "COMMIT")
        assert scene.store.check() == []


def test_a_save_that_was_interrupted_is_not_stored_twice_by_the_next_one(database: Path) -> None:
    state = {"is_writing": False, "is_done": False}

    def arm(statement: str) -> None:
        state["is_writing"] = statement == "BEGIN IMMEDIATE" or (state["is_writing"] and statement != "BEGIN")

    def interrupt(statement: str) -> None:
        if statement == "COMMIT" and state["is_writing"] and not state["is_done"]:
            state["is_done"] = True
            signal.raise_signal(signal.SIGINT)

    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
    with hooked(before=arm, after=interrupt), StateStore.open(database) as store:
        session = store.load_session("one")
        assert session is not None
        session.add_user_message("hello")
        with pytest.raises(KeyboardInterrupt):
            store.save_session(session)
        store.save_session(session)
        assert said(store, "one") == ["hello"]
        session.add_user_message("and on")
        store.save_session(session)
        assert said(store, "one") == ["hello", "and on"]


def test_a_commit_that_comes_after_the_end_is_refused_and_waits_for_nobody(database: Path) -> None:
    async def scene() -> None:
        store = await AsyncStateStore.open(database)
        await store.get_or_create_session("alice", "one")
        late = store._host.engine.commit([])
        await store.close()
        with pytest.raises(StoreClosed):
            await asyncio.wait_for(late, 30)

    asyncio.run(scene())


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_DELETE, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_UNLOCK]
)
def test_a_group_whose_journal_is_gone_when_its_commit_fails_is_not_made_again(code: int, database: Path) -> None:
    state = {"is_ready": False}

    def fail(statement: str) -> None:
        if statement == "COMMIT" and state["is_ready"]:
            state["is_ready"] = False
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise error

    with hooked(after=fail):
        engine = SqliteEngine(database, journal="rollback")
        step(engine.open())
        step(engine.commit([ChangeSession("one", NOW, create=NewSession("alice", NOW))]))
        state["is_ready"] = True
        results = step(engine.commit_group([[_append("one", "a")], [_append("one", "b")]]))
        step(engine.close())
    assert all(isinstance(result, StoreUnavailable) for result in results)
    assert all("before it is written again" in str(result) for result in results)
    with StateStore.open(database) as store:
        assert said(store, "one") == ["a", "b"]
