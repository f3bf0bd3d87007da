"""Pruning: what goes, what stays, and how often anybody looks."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any

import pytest

from faces import Face, Place
from hooked import HookedEngine
from statestore import Doomed, PruneConfig, PruneThrottle, Session, StateStore, StoreUnavailable, UserMessage
from statestore.pruning import UserThrottles
from statestore.store.deleting import CHUNK_BYTES

OLD = datetime(2020, 1, 1, tzinfo=UTC)


def put(store: StateStore, session_id: str, updated: datetime = OLD, user: str = "alice") -> None:
    session = Session(user, session_id)
    session.updated_at = updated
    store.save_session(session)


def ids(store: StateStore) -> set[str]:
    return {summary.id for summary in store.list_sessions()}


def test_the_defaults_are_the_seeds() -> None:
    assert (PruneConfig().max_sessions, PruneConfig().ttl_hours, PruneConfig().max_sessions_per_user) == (100, 168, 0)


def test_without_a_config_the_defaults_hold(store: StateStore) -> None:
    now = datetime.now(UTC)
    put(store, "old", now - timedelta(hours=169))
    put(store, "young", now - timedelta(hours=167))
    assert store.prune_sessions() == 1
    assert ids(store) == {"young"}


def test_age_goes_first_then_the_number(store: StateStore) -> None:
    now = datetime.now(UTC)
    for number in range(4):
        put(store, f"young{number}", now - timedelta(minutes=number))
    for number in range(3):
        put(store, f"old{number}", now - timedelta(hours=48 + number))
    config = PruneConfig(max_sessions=2, ttl_hours=24)
    doomed = store.prune_sessions(config, dry_run=True)
    assert all(isinstance(candidate, Doomed) for candidate in doomed)
    reasons = {candidate.session.id: candidate.reason for candidate in doomed}
    assert reasons == {
        **dict.fromkeys(("old0", "old1", "old2"), "too old"),
        **dict.fromkeys(("young2", "young3"), "too many"),
    }
    assert store.count_sessions() == 7, "a dry run deletes nothing"
    assert store.prune_sessions(config) == 5
    assert ids(store) == {"young0", "young1"}
    assert store.prune_sessions(config) == 0


def test_of_two_sessions_of_one_moment_the_lower_id_is_kept(store: StateStore) -> None:
    for name in ("c", "a", "b"):
        put(store, name)
    assert store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 2
    assert ids(store) == {"a"}


def test_a_limit_for_each_user(store: StateStore) -> None:
    for number in range(3):
        put(store, f"a{number}", OLD + timedelta(days=number), "alice")
        put(store, f"b{number}", OLD + timedelta(days=number), "bob")
    config = PruneConfig(max_sessions=0, ttl_hours=0, max_sessions_per_user=1)
    assert {c.reason for c in store.prune_sessions(config, dry_run=True)} == {"too many of this user"}
    assert store.prune_sessions(config) == 4
    assert ids(store) == {"a2", "b2"}


def test_many_sessions_are_pruned_in_one_call(store: StateStore) -> None:
    for number in range(30):
        put(store, f"s{number:02}", OLD + timedelta(hours=number))
    assert store.prune_sessions(PruneConfig(max_sessions=7, ttl_hours=0)) == 23
    assert ids(store) == {f"s{number}" for number in range(23, 30)}


def test_what_is_saved_after_it_was_judged_lives(face: Face, place: Place) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine)  # type: ignore[arg-type]
    rival = StateStore.open(place.engine())
    for name in ("a", "b", "c"):
        put(store, name)

    def meanwhile(_: Sequence[Any]) -> None:
        engine.before = None
        rival.append("a", UserMessage("still here"))
        rival.delete_session("b")
        put(rival, "b")

    engine.before = meanwhile
    assert store.prune_sessions(PruneConfig(ttl_hours=1)) == 1
    assert ids(store) == {"a", "b"}, "b is another session by now"
    rival.close()


@pytest.mark.parametrize("is_erased", [False, True])
def test_large_sessions_go_a_few_at_a_time_so_that_others_get_their_turn(
    is_erased: bool, face: Face, place: Place
) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine)  # type: ignore[arg-type]
    for number in range(4):
        put(store, f"s{number}")
        store.append(f"s{number}", UserMessage("x" * (CHUNK_BYTES // 5 * 2)))
    sizes = {summary.id: summary.size for summary in store.list_sessions()}
    engine.commits.clear()
    if is_erased:
        assert store.erase_user("alice") == 4
    else:
        assert store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 3
    assert max(sum(sizes[change.id] for change in batch) for batch in engine.commits) <= CHUNK_BYTES


# -- the throttle -------------------------------------------------------------------------------------------------


def test_one_turn_per_cooldown() -> None:
    now = 100.0
    throttle = PruneThrottle(60, clock=lambda: now)
    assert throttle.should_prune() is True
    assert throttle.should_prune() is False
    now = 159.9
    assert throttle.should_prune() is False
    now = 160.0
    assert throttle.should_prune() is True
    assert throttle.should_prune() is False
    throttle.give_back()
    assert throttle.should_prune() is True
    assert throttle.should_prune() is False


def test_no_cooldown_is_every_turn() -> None:
    throttle = PruneThrottle(0, clock=lambda: 1.0)
    assert [throttle.should_prune() for _ in range(3)] == [True, True, True]


def test_one_of_many_threads_gets_the_turn() -> None:
    throttle = PruneThrottle(60)
    start = threading.Barrier(8)
    turns: list[bool] = []

    def ask() -> None:
        start.wait()
        turns.append(throttle.should_prune())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(turns) == [False] * 7 + [True]


def test_among_many_users_who_all_wait_not_all_are_looked_at_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    is_idle = PruneThrottle.is_idle

    def looked_at(throttle: PruneThrottle) -> bool:
        nonlocal looks
        looks += 1
        return is_idle(throttle)

    monkeypatch.setattr(PruneThrottle, "is_idle", looked_at)
    throttles = UserThrottles(60)
    for user in range(5000):
        assert throttles.of(str(user)).should_prune()
    assert looks < 4 * 5000
    assert not throttles.of("0").should_prune()  # nobody who waits was forgotten


def test_many_threads_may_serve_many_users() -> None:
    interval = sys.getswitchinterval()
    served: list[int] = []
    with StateStore.open("memory:") as store:

        def serve(number: int) -> None:
            for user in range(5000):
                store.for_user(f"{number}-{user}")
            served.append(number)

        threads = [threading.Thread(target=serve, args=(number,)) for number in range(16)]
        sys.setswitchinterval(1e-6)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    assert len(served) == 16


# -- in the background --------------------------------------------------------------------------------------------

CONFIG = PruneConfig(max_sessions=0, ttl_hours=24)


def test_closing_waits_for_the_background_prune(face: Face, place: Place) -> None:
    store = face.open(place.engine())
    put(store, "old")
    store.save_session_with_prune(Session("alice", "new"), CONFIG)
    store.close()
    assert ids(face.open(place.engine())) == {"new"}


def test_saving_with_prune_saves_even_when_it_is_not_the_turn_to_prune(face: Face, place: Place) -> None:
    store = face.open(place.engine(), prune_cooldown_secs=3600)
    store.save_session_with_prune(Session("alice", "first"), CONFIG)
    store.close()
    store = face.open(place.engine(), prune_cooldown_secs=3600)
    store.save_session_with_prune(Session("alice", "a"), CONFIG)
    put(store, "old")
    for name in ("b", "c"):
        store.save_session_with_prune(Session("alice", name), CONFIG)
        assert store.session_exists(name)
    store.close()


def test_a_prune_that_failed_gives_the_turn_back_and_is_told(face: Face, place: Place) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine, prune_cooldown_secs=3600)  # type: ignore[arg-type]
    put(store, "old")
    told: SimpleQueue[logging.LogRecord] = SimpleQueue()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.put(record)

    def refuse_deletes(batch: Sequence[Any]) -> None:
        if type(batch[0]).__name__ == "DeleteSession":
            raise StoreUnavailable("the disk is gone")

    engine.before = refuse_deletes
    listener = Listener()
    logging.getLogger("statestore").addHandler(listener)
    try:
        store.save_session_with_prune(Session("alice", "a"), CONFIG)
        while told.empty():
            store.session_exists("a")  # lets the event loop go on, if there is one
    finally:
        logging.getLogger("statestore").removeHandler(listener)
    assert store.session_exists("a"), "the save itself is not affected"
    warning = told.get()
    assert "prun" in warning.getMessage()
    assert warning.exc_info is not None
    engine.before = None
    store.save_session_with_prune(Session("alice", "b"), CONFIG)
    store.close()
    assert ids(face.open(place.engine())) == {"a", "b"}


def test_a_users_background_prune_takes_that_users_sessions_alone(face: Face, place: Place) -> None:
    store = face.open(place.engine())
    put(store, "alices", user="alice")
    put(store, "bobs", user="bob")
    store.for_user("alice").save_session_with_prune(Session("alice", "new"), CONFIG)
    store.close()
    assert ids(face.open(place.engine())) == {"bobs", "new"}
