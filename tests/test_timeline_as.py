"""Reading many records fast: each one's JSON decoded once, as whatever type the caller asks for."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from hooked import CountingEngine
from statestore import AgentResponse, Event, Session, SessionNotFound, StateStore, UserMessage
from statestore.engines.memory import MemoryEngine


class Said(msgspec.Struct):
    content: str = ""
    data: Any = None


@pytest.fixture
def filled(store: StateStore) -> StateStore:
    store.save_session(Session("alice", "one"))
    store.append("one", UserMessage("first"), Event("tool", {"n": 2}), AgentResponse("third"), UserMessage("fourth"))
    return store


def test_records_of_all_kinds_come_in_order_with_their_numbers(filled: StateStore) -> None:
    found = filled.timeline_as("one", Said)
    assert [(seq, said.content, said.data) for seq, said in found] == [
        (1, "first", None),
        (2, "", {"n": 2}),
        (3, "third", None),
        (4, "fourth", None),
    ]
    assert [seq for seq, _ in filled.timeline_as("one", dict)] == [1, 2, 3, 4]


def test_a_part_of_them_is_asked_for_by_number(filled: StateStore) -> None:
    assert [seq for seq, _ in filled.timeline_as("one", Said, after=1, before=4)] == [2, 3]
    assert [seq for seq, _ in filled.timeline_as("one", Said, limit=2)] == [3, 4]
    assert [seq for seq, _ in filled.timeline_as("one", Said, before=4, limit=2)] == [2, 3]
    assert filled.timeline_as("one", Said, after=4) == []


def test_what_is_not_of_the_type_is_left_out_and_named(filled: StateStore, caplog: pytest.LogCaptureFixture) -> None:
    class WithContent(msgspec.Struct):
        content: str

    with caplog.at_level(logging.WARNING, "statestore"):
        found = filled.timeline_as("one", WithContent)
    assert [(seq, said.content) for seq, said in found] == [(1, "first"), (3, "third"), (4, "fourth")]
    assert "session one: record 2 cannot be read" in caplog.text


def test_one_record_that_does_not_fit_does_not_make_all_be_read_again() -> None:
    engine = CountingEngine(MemoryEngine())
    with StateStore.open(engine) as store:
        store.save_session(Session("alice", "one"))
        store.append("one", *(UserMessage(str(number)) for number in range(50)), Event("tool", {"n": 2}))
        engine.asked.clear()
        assert len(store.timeline_as("one", str | Said)) == 51
        assert engine.asked["read_session"] == 1
        assert store.timeline_as("one", int) == []
        assert engine.asked["read_session"] == 2


def test_a_session_that_is_not_there_is_not_found(store: StateStore) -> None:
    with pytest.raises(SessionNotFound):
        store.timeline_as("nobody", Said)


def test_a_counter_is_updated_without_loading_the_records(filled: StateStore) -> None:
    seen: list[int] = []

    def count(session: Session) -> None:
        seen.append(len(session.user_messages))
        session.set_metadata("count", (session.get_metadata("count") or 0) + 1)

    for _ in range(2):
        filled.update_session_with("one", count, last=0)
    assert seen == [0, 0]
    loaded = filled.load_session("one")
    assert loaded is not None
    assert (loaded.metadata, len(loaded.user_messages)) == ({"count": 2}, 2)
