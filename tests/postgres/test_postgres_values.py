"""What is long, odd or many is stored as in every other engine."""

from __future__ import annotations

import time

import pytest
from postgres_hooks import run_in

from statestore import DocumentConflict, Session, StateStore


def _seconds_for(store: StateStore, count: int) -> float:
    sessions = [Session("alice", f"{count}-{number}") for number in range(count)]
    for session in sessions:
        session.parent_session_id = "parent"
        session.set_metadata("number", session.id)
    start = time.perf_counter()
    with store.batch() as batch:
        for session in sessions:
            batch.save_session(session)
    return time.perf_counter() - start


def test_ten_times_as_many_sessions_with_metadata_in_a_batch_take_about_ten_times_as_long(store: StateStore) -> None:
    few = min(_seconds_for(store, 298), _seconds_for(store, 299), _seconds_for(store, 300))
    many = _seconds_for(store, 3000)
    assert many < 30 * few
    loaded = store.load_session("3000-2999")
    assert loaded is not None
    assert loaded.get_metadata("number") == "3000-2999"
    assert loaded.parent_session_id == "parent"
    assert store.check() == []


def test_a_parent_of_any_length_is_stored_and_found(url: str, store: StateStore) -> None:
    parents = ["p" * 12_000, "".join(f"{number:x}" for number in range(60_000)), "a\0b", "short"]
    for number, parent in enumerate(parents):
        session = Session("alice", f"s{number}")
        session.parent_session_id = parent
        store.save_session(session)
    for number, parent in enumerate(parents):
        assert [found.id for found in store.list_sessions(parent_session_id=parent)] == [f"s{number}"]
    plan = run_in(
        url,
        "SET enable_seqscan = off",
        "EXPLAIN SELECT 1 FROM sessions WHERE sha256(parent_session_id) = sha256('p') AND parent_session_id = 'p'",
    )
    assert "sessions_children" in str(plan)


@pytest.mark.parametrize("version", ["a\0b", "\ud800", ""])
def test_a_version_that_was_never_given_out_is_a_conflict(store: StateStore, version: str) -> None:
    store.save_json("notes", "n", 1)
    with pytest.raises(DocumentConflict):
        store.save_json("notes", "n", 2, if_version=version)
    assert store.load_json("notes", "n") == 1
