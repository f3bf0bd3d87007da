"""Searching a store: what the suite for engines does not try, because it needs a certain engine or a certain moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faces import Face, Place
from statestore import (
    AgentResponse,
    Event,
    InvalidCursor,
    InvalidValue,
    NotSupported,
    ReadOnlyStore,
    Session,
    StateStore,
    StoreClosed,
    UserMessage,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def filled(face: Face, path: Path) -> StateStore:
    store = face.open(path)
    session = Session("alice", "a")
    session.add_user_message("Where do zebras graze?")
    session.add_agent_response("A zebra grazes in the savanna.")
    session.set_metadata("title", "On the zebra")
    store.save_session(session)
    other = Session("bob", "b")
    other.add_event("tool", {"found": ["zebra", "horse"]})
    store.save_session(other)
    return store


def places(store: StateStore, query: str, **options: Any) -> list[tuple[str, int | None]]:
    return sorted(((hit.session_id, hit.seq) for hit in store.search_sessions(query, **options)), key=str)


ZEBRAS = [("a", 2), ("a", None), ("b", 1)]


def test_a_read_only_store_searches_with_an_index_that_was_never_made(
    face: Face, filled: StateStore, path: Path
) -> None:
    reader = face.open(path, read_only=True)
    for _ in range(3):
        assert places(reader, "zebra") == ZEBRAS
        assert places(reader, "zebra", user_id="bob") == [("b", 1)]
        assert places(reader, "savan*") == [("a", 2)]
    assert places(filled, "zebra") == ZEBRAS


def test_a_read_only_store_sees_what_was_written_since_the_last_search(
    face: Face, filled: StateStore, path: Path
) -> None:
    assert places(filled, "zebra") == ZEBRAS
    reader = face.open(path, read_only=True)
    assert places(reader, "zebra") == ZEBRAS
    filled.append("b", UserMessage("one more zebra"))
    assert places(reader, "zebra") == [*ZEBRAS, ("b", 2)]
    filled.rewind_session("a", to=1)
    filled.delete_session("b")
    filled.save_session(Session("carol", "b"))
    filled.update_session_with("a", lambda session: session.set_metadata("title", "On horses"))
    assert places(reader, "zebra") == []
    assert places(reader, "horses") == [("a", None)]
    assert places(reader, "zebras") == [("a", 1)]


def test_a_read_only_store_pages_through_a_stale_index(face: Face, filled: StateStore, path: Path) -> None:
    filled.append("a", *(UserMessage("zebra " * (1 + n % 3)) for n in range(20)))
    reader = face.open(path, read_only=True)
    whole = [(hit.session_id, hit.seq) for hit in reader.search_sessions("zebra")]
    found: list[tuple[str, int | None]] = []
    after = None
    while page := reader.search_sessions("zebra", limit=4, after=after):
        found += [(hit.session_id, hit.seq) for hit in page]
        after = page[-1].cursor
    assert found == whole
    assert len(found) == len(set(found)) == 23


def test_a_read_only_store_writes_nothing_when_it_searches(face: Face, filled: StateStore, path: Path) -> None:
    filled.close()
    before = path.read_bytes()
    reader = face.open(path, read_only=True)
    assert places(reader, "zebra") == ZEBRAS
    with pytest.raises(ReadOnlyStore):
        reader.append("a", UserMessage("x"))
    reader.close()
    assert path.read_bytes() == before


def test_an_index_that_is_behind_by_more_than_is_kept_is_made_anew(face: Face, path: Path) -> None:
    from statestore.engines.sqlite import SqliteEngine

    store = face.open(SqliteEngine(path, changes_kept=10))
    store.save_session(Session("alice", "s"))
    store.append("s", UserMessage("the first zebra"))
    assert places(store, "zebra") == [("s", 1)]
    store.delete_session("s")
    store.save_session(Session("bob", "s"))
    for number in range(1010):
        store.append("s", Event("tool", f"horse{number}"))
    assert places(store, "zebra") == []
    assert places(store, "horse1009") == [("s", 1010)]
    assert places(store, "horse0", user_id="bob") == [("s", 1)]


@pytest.mark.parametrize("query", [None, 5, b"zebra", ["zebra"]])
def test_a_query_is_a_text(filled: StateStore, query: Any) -> None:
    with pytest.raises(InvalidValue):
        filled.search_sessions(query)


@pytest.mark.parametrize(
    "options", [{"user_id": 5}, {"project_id": b"p"}, {"limit": -1}, {"limit": 1.5}, {"limit": True}]
)
def test_wrong_options_are_told(filled: StateStore, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        filled.search_sessions("zebra", **options)


@pytest.mark.parametrize("cursor", [5, b"", "x", ""])
def test_a_cursor_is_the_cursor_of_a_hit(filled: StateStore, cursor: Any) -> None:
    with pytest.raises(InvalidCursor):
        filled.search_sessions("zebra", after=cursor)


def test_a_closed_store_does_not_search(face: Face, path: Path) -> None:
    store = face.open(path)
    alice = store.for_user("alice")
    store.close()
    for searched in (store, alice):
        with pytest.raises(StoreClosed):
            searched.search_sessions("zebra")


def test_who_cannot_search_says_who_can(store: StateStore, place: Place) -> None:
    if place.kind == "memory":
        with pytest.raises(NotSupported, match="sqlite:, postgresql: and file:"):
            store.search_sessions("zebra")
    else:
        assert store.search_sessions("zebra") == []


@pytest.mark.parametrize("place", ["files", "sqlite"], indirect=True)
def test_a_search_in_the_middle_of_a_conversation(store: StateStore, other: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("hello")
    store.save_session(session)
    session.add_user_message("not saved yet: zebra")
    assert places(other, "zebra") == []
    store.save_session(session)
    assert places(other, "zebra") == [("s", 2)]
    other.append("s", AgentResponse("zebra"))
    (best, second) = store.search_sessions("zebra")
    assert (best.seq, best.kind, second.seq, second.kind) == (3, "agent", 2, "user")
    assert best.title == second.title == "hello"
