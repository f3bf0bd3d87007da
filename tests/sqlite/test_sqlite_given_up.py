"""What was given up holds nobody up: no lock stays behind, and nothing is made a second time."""

from __future__ import annotations

import errno
import fcntl
import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlite_hooks import hooked, raw, said

from statestore import StateStore, UserMessage
from statestore.engine import Batch, ChangeSession, NewRecord, NewSession
from statestore.engines.sqlite import gathering as gathering_module
from statestore.engines.sqlite.gathering import Gathering, Slot, _Entry  # pyright: ignore[reportPrivateUsage]
from statestore.host import step
from statestore.waking import Sleep

NOW = "2026-01-31T12:00:00Z"


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Circles of objects stay, as they do for a while in any program."""
    gc.disable()
    yield
    gc.enable()


def _say(text: str, **options: Any) -> ChangeSession:
    body = b'{"content":"%b","timestamp":"%b"}' % (text.encode(), NOW.encode())
    return ChangeSession(options.pop("id", "s"), NOW, append=(NewRecord("user", body, 0),), **options)


@pytest.mark.usefixtures("uncollected")
def test_after_a_group_that_failed_and_an_index_that_is_damaged_everybody_can_write(
    database: Path, opened: Any
) -> None:
    store = opened(f"sqlite:{database}?timeout=3")
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("hello world"))
    assert store.search_sessions("hello")
    nobody: Any = None
    refused = _say("b", id="t", create=NewSession(nobody, NOW))
    results = step(store._store._engine.commit_group([[_say("a")], [refused], [_say("c")]]))
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    with raw(database) as connection:
        connection.execute("UPDATE words_data SET block = x'ffffffffffffffffff' WHERE id = 10")
    store.append("s", UserMessage("news"))
    assert [hit.seq for hit in store.search_sessions("hello")] == [1]
    store.append("s", UserMessage("more"))
    assert said(store, "s") == ["hello world", "a", "c", "news", "more"]


def test_what_was_committed_is_acknowledged_though_the_turn_cannot_be_handed_on(
    store: StateStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Told that it failed, a caller would store it a second time."""
    store.get_or_create_session("alice", "s")
    turn = store._store._engine._turns._turn  # type: ignore[reportPrivateUsage, attr-defined]
    flock = fcntl.flock
    failed: list[int] = []

    def fail_once(fd: int, operation: int) -> None:
        if fd == turn and operation == fcntl.LOCK_UN and not failed:
            failed.append(fd)
            raise OSError(errno.EIO, "Input/output error")
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", fail_once)
    assert store.append("s", UserMessage("once")) == [1]
    assert failed
    assert "Input/output error" in caplog.text
    assert store.append("s", UserMessage("twice")) == [2]
    assert said(store, "s") == ["once", "twice"]


def test_a_connection_that_a_handler_of_signals_broke_into_is_not_used_again(store: StateStore, opened: Any) -> None:
    raised: list[str] = []

    def break_into(statement: str) -> None:
        if statement.startswith("DROP TABLE IF EXISTS temp.words") and not raised:
            raised.append(statement)
            raise TimeoutError("of the program's own")

    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("apple"))
    with hooked(after=break_into):
        reader = opened(read_only=True)
        with pytest.raises(TimeoutError):
            reader.search_sessions("apple")
        store.append("s", UserMessage("banana"))
        assert [hit.seq for hit in reader.search_sessions("banana")] == [2]


def test_what_a_leader_made_before_it_was_interrupted_is_not_made_again() -> None:
    first, second = (), (_say("second"),)
    while (made := _made_after_an_interrupted_leader(first, second)) is None:
        pass  # the follower was faster than the leader, and made everything itself
    assert made == [second]


def _made_after_an_interrupted_leader(first: Batch, second: Batch) -> list[Batch] | None:
    """What a follower makes whose first batch was made by a leader; ``None`` if there was no such leader."""
    gathering = Gathering()
    made: list[Batch] = []

    def make_the_first_and_die(slots: list[Slot]) -> None:
        for slot in slots:
            slot.result = []
            if slot.batch is first:
                raise KeyboardInterrupt

    def make(slots: list[Slot]) -> None:
        for slot in slots:
            made.append(slot.batch)
            slot.result = []

    with gathering._leading:  # pyright: ignore[reportPrivateUsage]
        follower = _started(lambda: gathering.commit([first, second], make))
        _until(lambda: _waiting(gathering))
    try:
        gathering.commit([(_say("own"),)], make_the_first_and_die)
    except KeyboardInterrupt:
        follower.join()
        return made
    follower.join()
    return None


def test_what_a_leader_took_along_and_did_not_make_is_offered_to_the_next_one() -> None:
    """Though the next one leads already, and alone: among many writers somebody always does."""
    while not _is_offered_again_to_who_leads_next():
        pass  # the follower was faster than the next leader, and led itself


def _is_offered_again_to_who_leads_next() -> bool:
    gathering = Gathering()
    made: list[Batch] = []
    offered: list[bool] = []
    batch = (_say("once"),)

    def die(_slots: list[Slot]) -> None:
        raise KeyboardInterrupt

    def make(slots: list[Slot]) -> None:
        for slot in slots:
            made.append(slot.batch)
            slot.result = []

    def make_when_it_is_offered(slots: list[Slot]) -> None:
        _until(lambda: _waiting(gathering) or made)
        offered.append(bool(_waiting(gathering)))
        make(slots)

    with gathering._leading:  # pyright: ignore[reportPrivateUsage]
        follower = _started(lambda: gathering.commit([batch], make))
        _until(lambda: _waiting(gathering))
    with pytest.raises(KeyboardInterrupt):
        gathering.commit([(_say("interrupted"),)], die)
    gathering.commit([(_say("next"),)], make_when_it_is_offered)
    follower.join()
    assert made.count(batch) == 1
    return offered == [True]


def test_who_is_overtaken_when_it_is_to_lead_holds_up_nobody_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It sees that nobody leads; before it does, somebody else comes, leads, and takes it along."""
    monkeypatch.setattr(gathering_module, "NAP", 3600.0)
    gathering = Gathering()
    made: list[Batch] = []
    overtaken = threading.Event()
    hooked: list[bool] = []
    others: list[threading.Thread] = []

    def make(slots: list[Slot]) -> None:
        for slot in slots:
            made.append(slot.batch)
            slot.result = []

    def make_when_the_third_waits(slots: list[Slot]) -> None:
        overtaken.set()
        _until(lambda: ("third",) in [entry.slots[0].batch for entry in gathering._waiting])  # pyright: ignore[reportPrivateUsage]
        make(slots)

    class Lock:
        """The lock of who leads; the first to see that it is free is overtaken before it can tell."""

        def __init__(self) -> None:
            self.lock = threading.Lock()

        def locked(self) -> bool:
            is_locked = self.lock.locked()
            if not is_locked and not hooked:
                hooked.append(True)
                others.append(_started(lambda: gathering.commit([("second",)], make_when_the_third_waits)))  # type: ignore[list-item]
                overtaken.wait()
            return is_locked

        def __enter__(self) -> None:
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    gathering._leading = leading = Lock()  # type: ignore[reportAttributeAccessIssue, assignment]
    with leading:
        first = _started(lambda: gathering.commit([("first",)], make))  # type: ignore[list-item]
        _until(lambda: _waiting(gathering))
    gathering._wake_next()  # pyright: ignore[reportPrivateUsage]
    overtaken.wait()
    third = _started(lambda: gathering.commit([("third",)], make))  # type: ignore[list-item]
    for thread in (first, *others, third):
        thread.join(60)
        assert not thread.is_alive()
    assert sorted(made) == [("first",), ("second",), ("third",)]


def test_who_withdraws_while_a_leader_takes_all_along_takes_nobody_elses_place() -> None:
    """It was interrupted, or saw that nobody leads; and whoever comes at that very moment stays in line."""
    gathering = Gathering()

    class Line(list[Any]):
        def __getitem__(self, which: Any) -> Any:
            found = super().__getitem__(which)
            self.remove(first)
            self.append(newcomer)
            return found

    first, second, newcomer = (_Entry([Slot(((_say(name)),))], Sleep()) for name in ("first", "second", "new"))
    gathering._waiting = line = Line([first, second])  # pyright: ignore[reportPrivateUsage]
    assert gathering._take_along() == [second]  # pyright: ignore[reportPrivateUsage]
    assert list(line) == [newcomer]


def _started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _waiting(gathering: Gathering) -> int:
    return len(gathering._waiting)  # pyright: ignore[reportPrivateUsage]


def _until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0)
