"""A fork leaves the original as it is; a rewind drops what came after a point."""

from __future__ import annotations

from typing import Any

import pytest

from statestore import Session, SessionConflict, SessionNotFound, StateStore, UserMessage, WrongUser


@pytest.fixture
def original(store: StateStore) -> Session:
    """a, A, e, b, B: with fields, metadata and a key."""
    session = Session("alice", "s")
    session.add_user_message("a")
    session.add_agent_response("A")
    session.add_event("e", {"x": 1}, key="k")
    session.add_user_message("b")
    session.add_agent_response("B")
    session.set_active_seed("seed")
    session.set_active_persona("persona")
    session.project_id = "project"
    session.set_metadata("title", "T")
    session.set_metadata("n", [1, 2.50])
    store.save_session(session)
    return session


def told(store: StateStore, session_id: str) -> list[tuple[Any, str]]:
    return [(entry.seq, getattr(entry.record, "content", entry.kind)) for entry in store.timeline(session_id)]


ALL = [(1, "a"), (2, "A"), (3, "e"), (4, "b"), (5, "B")]


def test_a_fork_has_everything_and_names_its_parent(store: StateStore, original: Session) -> None:
    before = store.load_json("sessions", "s")
    fork = store.fork_session("s")
    assert fork.id != "s"
    assert (fork.user_id, fork.parent_session_id) == ("alice", "s")
    assert told(store, fork.id) == ALL
    assert [entry.record for entry in store.timeline(fork.id)] == [entry.record for entry in store.timeline("s")]
    assert (fork.active_seed_id, fork.active_persona_id, fork.project_id) == ("seed", "persona", "project")
    assert fork.metadata == {"title": "T", "n": [1, 2.5]}
    assert fork.created_at >= original.updated_at
    assert store.load_json("sessions", "s") == before
    summary = next(s for s in store.list_sessions() if s.id == fork.id)
    assert (summary.title, summary.project_id, summary.message_count, summary.event_count) == ("T", "project", 2, 1)


@pytest.mark.parametrize("at", range(7))
def test_a_fork_may_begin_earlier(store: StateStore, original: Session, at: int) -> None:
    fork = store.fork_session("s", at=at, new_id="f")
    assert told(store, "f") == ALL[:at]
    assert [getattr(entry.record, "content", entry.kind) for entry in fork.timeline] == [name for _, name in ALL[:at]]
    del fork.metadata["title"]
    fork.add_agent_response("after")
    store.save_session(fork)
    assert told(store, "f")[-1][1] == "after"
    assert told(store, "s") == ALL
    summary = next(s for s in store.list_sessions() if s.id == "f")
    assert summary.title == ("a" if at else None)


def test_forks_go_their_own_way(store: StateStore, original: Session) -> None:
    fork = store.fork_session("s", at=2, new_id="f")
    fork.add_user_message("fork's")
    store.save_session(fork)
    original.add_user_message("original's")
    store.save_session(original)
    assert [name for _, name in told(store, "f")] == ["a", "A", "fork's"]
    assert [name for _, name in told(store, "s")][-1] == "original's"
    store.delete_session("s")
    assert store.session_exists("f")


def test_a_fork_keeps_the_idempotency_keys_it_copied(store: StateStore, original: Session) -> None:
    store.fork_session("s", new_id="f")
    store.fork_session("s", at=2, new_id="g")
    assert store.append("f", UserMessage("again"), keys=["k"]) == [3]
    assert store.append("g", UserMessage("new here"), keys=["k"]) == [3]
    assert len(told(store, "f")) == 5
    assert len(told(store, "g")) == 3


def test_a_fork_of_a_fork_names_its_own_parent(store: StateStore, original: Session) -> None:
    store.fork_session("s", new_id="f")
    assert store.fork_session("f", new_id="g").parent_session_id == "f"
    assert [s.id for s in store.list_sessions(parent_session_id="s")] == ["f"]
    assert [s.id for s in store.list_sessions(top_level=True)] == ["s"]


def test_a_fork_does_not_overwrite(store: StateStore, original: Session) -> None:
    store.save_session(Session("alice", "taken"))
    store.save_session(Session("bob", "bobs"))
    with pytest.raises(SessionConflict):
        store.fork_session("s", new_id="taken")
    with pytest.raises(SessionConflict):
        store.fork_session("s", new_id="s")
    with pytest.raises((SessionConflict, WrongUser)):
        store.fork_session("s", new_id="bobs")
    with pytest.raises(SessionNotFound):
        store.fork_session("absent")
    assert told(store, "taken") == told(store, "bobs") == []
    assert told(store, "s") == ALL


@pytest.mark.parametrize("to", range(7))
def test_a_rewind_drops_what_came_after(store: StateStore, original: Session, to: int) -> None:
    dropped = store.rewind_session("s", to=to)
    assert [(entry.seq, getattr(entry.record, "content", entry.kind)) for entry in dropped] == ALL[to:]
    assert told(store, "s") == ALL[:to]
    loaded = store.load_session("s")
    assert loaded is not None
    assert loaded.metadata == original.metadata
    assert (loaded.active_seed_id, loaded.project_id) == ("seed", "project")
    assert store.rewind_session("s", to=to) == []


def test_numbers_are_never_given_out_twice(store: StateStore, original: Session) -> None:
    store.rewind_session("s", to=1)
    assert store.append("s", UserMessage("new")) == [6]
    store.rewind_session("s", to=0)
    assert store.append("s", UserMessage("newer")) == [7]
    assert told(store, "s") == [(7, "newer")]
    loaded = store.load_session("s")
    assert loaded is not None
    loaded.user_messages.clear()
    store.save_session(loaded)
    assert store.append("s", UserMessage("newest")) == [8]


def test_numbers_are_never_given_out_twice_after_reopening(
    store: StateStore, other: StateStore, original: Session
) -> None:
    store.rewind_session("s", to=0)
    assert other.append("s", UserMessage("new")) == [6]


def test_the_title_is_that_of_what_is_left(store: StateStore, original: Session) -> None:
    del original.metadata["title"]
    store.save_session(original)
    assert store.list_sessions()[0].title == "a"
    store.rewind_session("s", to=0)
    assert store.list_sessions()[0].title is None
    store.append("s", UserMessage("new"))
    assert store.list_sessions()[0].title == "new"


def test_a_rewind_makes_loaded_objects_conflict_only_where_they_rewrite(store: StateStore, original: Session) -> None:
    store.rewind_session("s", to=2)
    original.add_user_message("c")
    store.save_session(original)
    assert [name for _, name in told(store, "s")] == ["a", "A", "c"]
    original.user_messages.clear()
    with pytest.raises(SessionConflict):
        store.save_session(original)


def test_a_rewind_moves_updated_at(store: StateStore, original: Session) -> None:
    before = store.list_sessions()[0].updated_at
    store.rewind_session("s", to=2)
    assert store.list_sessions()[0].updated_at > before


def test_rewinding_what_is_not_there_says_so(store: StateStore) -> None:
    with pytest.raises(SessionNotFound):
        store.rewind_session("absent", to=0)
