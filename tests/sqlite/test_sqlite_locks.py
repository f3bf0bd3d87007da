"""Others hold a lock: for a while, for too long, or for ever because they stand still."""

from __future__ import annotations

import asyncio
import fcntl
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import hooked, raw, said, seqs

from children import Child, Tell, in_child
from contestants import in_threads
from faults.handles import handles_in_use
from statestore import AgentResponse, AsyncStateStore, StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite.turns import Turnstile


class Holder:
    """Another process that takes something, and holds it until it is told to let go."""

    def __init__(self, hold: Callable[[Callable[[], None]], None]) -> None:
        reading, self._writing = os.pipe()

        def work(tell: Tell) -> None:
            os.close(self._writing)

            def stay() -> None:
                tell("held")
                os.read(reading, 1)

            hold(stay)

        self._child = Child(work)
        os.close(reading)
        self._child.wait_for_words()

    def stop(self) -> None:
        self._child.stop()

    def let_go(self) -> None:
        """Wait until it has."""
        self._child.go_on()
        os.close(self._writing)
        ended = self._child.ended()
        assert not ended.error, ended.error


def _holding_write_lock(path: Path) -> Holder:
    def hold(stay: Callable[[], None]) -> None:
        with raw(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            stay()
            connection.execute("ROLLBACK")

    return Holder(hold)


def _holding_file(path: str) -> Holder:
    def hold(stay: Callable[[], None]) -> None:
        fd = os.open(path, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX)
        stay()
        os.close(fd)

    return Holder(hold)


@pytest.fixture
def impatient(database: Path, opened: Callable[..., StateStore]) -> StateStore:
    """A store that waits for others for 0.3 seconds."""
    store = opened(f"sqlite:{database}?timeout=0.3")
    store.get_or_create_session("alice", "one")
    return store


WRITES: list[Callable[[StateStore], object]] = [
    lambda store: store.append("one", UserMessage("late")),
    lambda store: store.save_markdown("notes", "one", "late"),
    lambda store: store.search_sessions("hello"),  # which brings the index up to date
]


def test_a_lock_held_for_too_long_is_told_with_the_time(impatient: StateStore, database: Path) -> None:
    impatient.append("one", UserMessage("hello"))
    holder = _holding_write_lock(database)
    for write in WRITES:
        with pytest.raises(StoreUnavailable, match=r"locked by another program for 0\.3 s"):
            write(impatient)
    assert said(impatient, "one") == ["hello"]
    assert len(impatient.list_sessions()) == 1
    holder.let_go()
    for write in WRITES:
        write(impatient)
    assert said(impatient, "one") == ["hello", "late"]
    assert impatient.check() == []


def test_a_lock_held_for_less_than_the_time_is_waited_for(database: Path) -> None:
    is_waiting = threading.Event()

    def note(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE" and threading.current_thread() is not threading.main_thread():
            is_waiting.set()

    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
    holder = _holding_write_lock(database)
    with hooked(before=note), StateStore.open(database) as store:
        told: list[int] = []
        writer = threading.Thread(target=lambda: told.extend(store.append("one", UserMessage("hello"))))
        writer.start()
        assert is_waiting.wait(30)
        writer.join(0.2)
        assert writer.is_alive(), "it did not wait"
        holder.let_go()
        writer.join()
        assert told == [1]


@pytest.mark.parametrize("file", ["-gate", "-turn"])
def test_a_process_that_stands_still_with_the_turn_does_not_hang_others(file: str, database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
    holder = _holding_file(f"{database}{file}")
    holder.stop()

    def work(tell: Tell) -> None:
        with StateStore.open(database, read_only=True) as store:
            tell(str(store.count_sessions()))
        try:
            StateStore.open(f"sqlite:{database}?timeout=0.3").close()
        except StoreUnavailable as error:
            tell(str(error))

    try:
        told = in_child(work, patience=20)
    finally:
        holder.let_go()
    assert told[0] == "1"
    assert "0.3 s" in told[1]


def test_a_process_that_stands_still_in_a_transaction_does_not_hang_others(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("before"))

    def stand_still(tell: Tell) -> None:
        def at_insert(statement: str) -> None:
            if statement.startswith("INSERT INTO records"):
                tell("in the middle")
                os.kill(os.getpid(), signal.SIGSTOP)

        with hooked(after=at_insert), StateStore.open(database) as store:
            store.append("one", UserMessage("slow"))
            tell("done")

    child = Child(stand_still)
    child.wait_for_words()
    os.waitpid(child.pid, os.WUNTRACED)

    def work(tell: Tell) -> None:
        try:
            store = StateStore.open(f"sqlite:{database}?timeout=0.3")
        except StoreUnavailable as error:
            tell(str(error))
            store = StateStore.open(database, read_only=True)
        tell(" ".join(said(store, "one")))

    def write(tell: Tell) -> None:
        impatient.append("one", UserMessage("no"))
        tell("written")

    try:
        told = in_child(work, patience=20)
    finally:
        child.go_on()
    assert told[-1] == "before"
    assert "0.3 s" in told[0]
    assert child.ended().told == ["in the middle", "done"]
    impatient = StateStore.open(f"sqlite:{database}?timeout=0.3")
    with impatient:
        assert in_child(write) == ["written"]
        assert said(impatient, "one") == ["before", "slow", "no"]


def test_an_open_store_is_told_when_somebody_stands_still_with_the_turn(database: Path) -> None:
    """One that was open before, not only one that is being opened; and all threads of it."""
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
    ready, go = os.pipe()

    def work(tell: Tell) -> None:
        with StateStore.open(f"sqlite:{database}?timeout=0.3") as store:
            store.append("one", UserMessage("before"))
            tell("open")
            os.read(ready, 1)

            def append(_: str) -> None:
                try:
                    store.append("one", UserMessage("late"))
                except StoreUnavailable as error:
                    tell(f"{'0.3 s' in str(error)}")

            in_threads(append, list("abcd"))
            tell(str(len(store.timeline("one"))))

    child = Child(work)
    child.wait_for_words()
    holder = _holding_file(f"{database}-turn")
    holder.stop()
    os.write(go, b"x")
    try:
        ended = child.ended(patience=20)
    finally:
        holder.let_go()
        os.close(ready)
        os.close(go)
    assert not ended.error, ended.error
    assert ended.told == ["open", "True", "True", "True", "True", "1"]


def test_one_who_was_interrupted_while_waiting_does_not_keep_the_turn(database: Path, store: StateStore) -> None:
    """Control-C while another process writes: the turn that comes later must not be kept for nobody."""
    store.get_or_create_session("alice", "one")
    main = threading.main_thread().ident
    assert main is not None
    holder = _holding_file(f"{database}-turn")
    gate = os.open(f"{database}-gate", os.O_RDWR)

    def interrupt() -> None:
        is_in_line = False
        while not is_in_line:
            try:
                fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(gate, fcntl.LOCK_UN)
            except BlockingIOError:
                is_in_line = True  # the gate is ours as long as we are the next one
        signal.pthread_kill(main, signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            store.append("one", UserMessage("interrupted"))
    finally:
        helper.join()
        os.close(gate)
        holder.let_go()

    def work(tell: Tell) -> None:
        with StateStore.open(f"sqlite:{database}?timeout=3") as other:
            tell(str(other.append("one", UserMessage("other"))))

    assert in_child(work) == ["[1]"]
    assert store.append("one", UserMessage("and on")) == [2]


def test_a_reader_that_takes_its_time_does_not_block_writers(opened: Callable[..., StateStore], database: Path) -> None:
    store = opened(durability="relaxed")
    store.get_or_create_session("alice", "one")
    with raw(database) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM records").fetchone() == (0,)
        told = [store.append("one", UserMessage("hello"))[0] for _ in range(1100)]  # beyond two checkpoints
        assert reader.execute("SELECT count(*) FROM records").fetchone() == (0,)
        reader.execute("COMMIT")
    assert told == list(range(1, 1101))


def test_threads_of_one_store_hold_the_turn_one_after_the_other(store: StateStore, database: Path) -> None:
    """A search brings the index up to date beside a commit: whoever is done must not give away the other's turn."""
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("hello"))
    is_there = {name: threading.Event() for name in ("append", "search")}
    may_go = {name: threading.Event() for name in ("append", "search")}

    def hold(statement: str) -> None:
        if statement == "COMMIT" and threading.current_thread().name in is_there:
            name = threading.current_thread().name
            if writers[name] and not is_there[name].is_set():
                is_there[name].set()
                assert may_go[name].wait(30)

    def note_write(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE" and threading.current_thread().name in is_there:
            writers[threading.current_thread().name] = True
        hold(statement)

    writers = dict.fromkeys(is_there, False)
    with hooked(before=note_write), StateStore.open(database) as busy:
        threads = [
            threading.Thread(name="append", target=lambda: busy.append("one", UserMessage("more"))),
            threading.Thread(name="search", target=lambda: busy.search_sessions("hello")),
        ]
        threads[0].start()
        assert is_there["append"].wait(30)
        threads[1].start()  # it may wait for the turn, or for SQLite's own lock
        may_go["append"].set()
        threads[0].join()
        assert is_there["search"].wait(30)
        fd = os.open(f"{database}-turn", os.O_RDWR)
        try:
            with pytest.raises(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(fd)
            may_go["search"].set()
            threads[1].join()


def test_many_threads_share_one_store(store: StateStore) -> None:
    store.get_or_create_session("alice", "shared")
    told: dict[str, list[int]] = {}

    def work(name: str) -> None:
        mine: list[int] = []
        for turn in range(20):
            mine += store.append("shared", UserMessage(f"{name}:{turn}"))
            store.save_json("counts", name, turn)
            assert store.load_json("counts", name) == turn
            assert store.timeline("shared", limit=1)[0].seq >= mine[-1]
            store.list_sessions()
        assert store.search_sessions(f'"{name}:19"')
        told[name] = mine

    in_threads(work, [f"thread{number}" for number in range(16)])
    assert sorted(seq for mine in told.values() for seq in mine) == seqs(store, "shared") == list(range(1, 321))
    assert all(mine == sorted(mine) for mine in told.values())
    assert store.check() == []


def test_many_tasks_share_one_store(database: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "shared")

    async def contest() -> list[list[int]]:
        async with AsyncStateStore.open(database) as shared:

            async def work(name: int) -> list[int]:
                mine: list[int] = []
                for turn in range(8):
                    mine += await shared.append("shared", UserMessage(f"{name}:{turn}"))
                    assert await shared.session_exists("shared")
                return mine

            return await asyncio.gather(*map(work, range(64)))

    told = asyncio.run(contest())
    assert sorted(seq for mine in told for seq in mine) == seqs(store, "shared") == list(range(1, 513))
    assert all(mine == sorted(mine) for mine in told)


@pytest.mark.parametrize("seed", range(3))
def test_a_cancelled_append_is_there_wholly_or_not_at_all_and_others_are(
    seed: int, database: Path, store: StateStore
) -> None:
    store.get_or_create_session("alice", "shared")
    chance = random.Random(seed)

    async def contest() -> tuple[set[str], set[str]]:
        kept: set[str] = set()
        cancelled: set[str] = set()
        async with AsyncStateStore.open(database) as shared:

            async def append(name: str) -> None:
                try:
                    await shared.append("shared", UserMessage(f"{name}/q"), AgentResponse(f"{name}/a"))
                except asyncio.CancelledError:
                    cancelled.add(name)
                    raise
                kept.add(name)

            for round_number in range(20):
                tasks = [asyncio.create_task(append(f"{round_number}.{number}")) for number in range(16)]
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                for task in chance.sample(tasks, 5):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return kept, cancelled

    kept, cancelled = asyncio.run(contest())
    words = said(store, "shared")
    assert len(words) == len(set(words)), "something is there twice"
    assert set(words) == {f"{name}/{half}" for name in {word[:-2] for word in words} for half in "qa"}
    stored = {word[:-2] for word in words}
    assert kept <= stored <= kept | cancelled
    assert len(kept) >= 20 * 11
    assert store.check() == []


def test_tasks_cancelled_while_a_lock_is_waited_for_disturb_nobody(database: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "shared")
    is_waiting = threading.Event()

    async def contest(holder: Holder) -> Counter[str]:
        async with AsyncStateStore.open(database) as shared:
            tasks = [asyncio.create_task(shared.append("shared", UserMessage("first")))]
            assert await asyncio.to_thread(is_waiting.wait, 30)
            tasks += [asyncio.create_task(shared.append("shared", UserMessage(f"{number}"))) for number in range(20)]
            await asyncio.sleep(0)  # all are queued up behind the first one
            for task in tasks[::2]:
                task.cancel()
            await asyncio.to_thread(holder.let_go)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            return Counter(type(result).__name__ for result in results)

    def note(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            is_waiting.set()

    holder = _holding_write_lock(database)
    with hooked(before=note):
        counts = asyncio.run(contest(holder))
    assert counts == {"list": 10, "CancelledError": 11}
    words = said(store, "shared")
    assert [word for word in words if word != "first" and int(word) % 2 == 0] == [str(n) for n in range(0, 20, 2)]
    assert len(words) == len(set(words)), "what was cancelled happened once or not at all"


def test_who_queued_up_for_a_turn_and_closes_has_no_handle_left(database: Path) -> None:
    database.touch()
    busy, patient = Turnstile(str(database), 30), Turnstile(str(database), 30)
    busy.open()
    for _ in range(20):  # what ends a moment later is caught sooner or later
        with busy.turn():
            before = handles_in_use()
            patient.open()
            waiting = threading.Thread(target=patient.take)
            waiting.start()
            while patient._line is None:
                assert waiting.is_alive()
        waiting.join(30)
        patient.hand_on()
        patient.close()
        assert handles_in_use() == before
    busy.close()
