"""Somebody sets the machine's clock, by days: order stays, nothing goes too early, and whoever waits waits as long."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from faults.clock import DAY, WallClock, wall_clock
from soak.grounds import fresh
from statestore import PruneConfig, Session, StateStore, UserMessage

ALL = ("memory", "files", "sqlite", "postgres", "valkey")
A_DAY_OLD = PruneConfig(max_sessions=0, ttl_hours=24)
JUMPS = (-30 * DAY, 30 * DAY, -400 * DAY, timedelta(), timedelta(seconds=-1))


@pytest.fixture
def clock() -> Iterator[WallClock]:
    with wall_clock() as clock:
        yield clock


@pytest.fixture(params=ALL)
def store(request: pytest.FixtureRequest, clock: WallClock) -> Iterator[StateStore]:
    with fresh(request.param) as ground, StateStore.open(ground.target) as store:
        yield store


def _contents(store: StateStore) -> list[str]:
    return [entry.record.content for entry in store.timeline("one")]  # type: ignore[union-attr]


def test_moments_rise_and_order_stays_whatever_the_clock_does(store: StateStore, clock: WallClock) -> None:
    session = Session("alice", "one")
    said: list[str] = []
    updated = session.updated_at
    for number, jump in enumerate(JUMPS * 2):
        clock.set(jump)
        session.add_user_message(f"question {number}")
        session.add_agent_response(f"answer {number}")
        store.save_session(session)
        said += [f"question {number}", f"answer {number}"]
        if number % 2:
            loaded = store.load_session("one")
            assert loaded is not None
            session = loaded
        assert session.updated_at >= updated
        updated = session.updated_at
    loaded = store.load_session("one")
    assert loaded is not None
    moments = [entry.record.timestamp for entry in loaded.timeline]
    assert moments == sorted(set(moments)), "moments rise strictly"
    assert _contents(store) == said
    assert [entry.seq for entry in store.timeline("one")] == list(range(1, 21))


def test_appends_stay_in_the_order_in_which_they_were_made(store: StateStore, clock: WallClock) -> None:
    store.get_or_create_session("alice", "one")
    for number, jump in enumerate(JUMPS):
        clock.set(jump)
        store.append("one", UserMessage(str(number)))
    assert _contents(store) == ["0", "1", "2", "3", "4"]
    summary = store.list_sessions()[0]
    assert summary.updated_at >= max(entry.record.timestamp for entry in store.timeline("one")) - timedelta(seconds=5)


def test_set_back_a_prune_deletes_nothing_that_is_too_young(store: StateStore, clock: WallClock) -> None:
    store.save_session(Session("alice", "before"))
    clock.set(-30 * DAY)
    store.save_session(Session("alice", "after"))
    assert store.prune_sessions(A_DAY_OLD) == 0
    clock.set(timedelta())
    assert store.prune_sessions(A_DAY_OLD, dry_run=True)[0].session.id == "after"  # by the clock it is 30 days old


def test_set_forward_a_prune_deletes_what_looks_old_and_nothing_else(store: StateStore, clock: WallClock) -> None:
    store.save_session(Session("alice", "before"))
    clock.set(30 * DAY)
    store.save_session(Session("alice", "after"))
    assert store.prune_sessions(A_DAY_OLD) == 1
    assert [summary.id for summary in store.list_sessions()] == ["after"]


def test_the_trash_keeps_its_hours_by_the_clock(store: StateStore, clock: WallClock) -> None:
    for name in ("one", "two"):
        store.save_session(Session("alice", name))
    store.delete_session("one", trash_hours=24)
    clock.set(-30 * DAY)
    store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0))
    assert [trashed.session.id for trashed in store.list_trash()] == ["one"], "set back, it is kept the longer"
    store.delete_session("two", trash_hours=24)
    assert {trashed.session.id for trashed in store.list_trash()} == {"one", "two"}
    clock.set(timedelta(hours=23))
    store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0))
    assert [trashed.session.id for trashed in store.list_trash()] == ["one"]
    assert store.restore_session("one").id == "one"


def test_turns_to_prune_do_not_go_by_the_clock(clock: WallClock) -> None:
    with StateStore.open("memory:", prune_cooldown_secs=3600) as store:
        one_only = PruneConfig(max_sessions=1, ttl_hours=0)
        store.save_session_with_prune(Session("alice", "one"), one_only)
        for jump in (30 * DAY, -30 * DAY):
            clock.set(jump)
            store.save_session_with_prune(Session.new("alice"), one_only)
        for thread in threading.enumerate():
            if thread.name == "statestore-background":
                thread.join()
        assert store.count_sessions() == 3


@pytest.mark.parametrize("engine", ["files", "sqlite", "postgres", "valkey"])
def test_whoever_watches_sees_each_record_once_whatever_the_clock_does(engine: str, clock: WallClock) -> None:
    with fresh(engine) as ground, StateStore.open(ground.target) as store:
        store.get_or_create_session("alice", "one")
        watch = store.watch("one", after=store.change_cursor())
        for jump in JUMPS:
            clock.set(jump)
            (seq,) = store.append("one", UserMessage("x"))
            while (notice := next(watch)).seq is None:
                pass  # of the session's fields
            assert notice.seq == seq


def test_who_waits_for_a_lock_waits_as_long_though_the_clock_is_set(tmp_path: Path, clock: WallClock) -> None:
    """The time for a lock is counted by the clock that nobody can set: a day forward does not end it."""
    database = tmp_path / "state.db"
    with StateStore.open(f"sqlite:{database}?timeout=60") as store:
        store.get_or_create_session("alice", "one")
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            done: list[int] = []
            thread = threading.Thread(target=lambda: done.extend(store.append("one", UserMessage("x"))))
            thread.start()
            clock.set(DAY)
            thread.join(0.3)
            assert thread.is_alive()
            clock.set(-DAY)
            other.execute("COMMIT")
        thread.join()
        assert done == [1]


def test_versions_of_a_file_do_not_come_back_though_the_clock_stands_still(tmp_path: Path, clock: WallClock) -> None:
    with StateStore.open(tmp_path / "state") as store:
        clock.freeze()
        versions = [store.save_markdown("notes", "one", "the same") for _ in range(20)]
        assert len(set(versions)) == 20
