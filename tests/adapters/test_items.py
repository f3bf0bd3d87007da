"""Items beside records: stored once, read back exactly, in one decode; and reading records as a type of one's own."""

from __future__ import annotations

import logging
from typing import Any

import msgspec
import pytest

from faces import Face, Place
from statestore import Event, InvalidValue, SessionNotFound, StateStore, UserMessage
from statestore.adapters.items import (
    TOOL_CALL,
    agent_response,
    aside,
    carrier_of,
    event,
    is_aside,
    item_in,
    kind_for,
    user_message,
)

ITEM: dict[str, Any] = {
    "role": "user",
    "content": "Hello",
    "n": [1, 2.5, None, True, "\u0000", "東京"],
    "big": 2**64 - 1,
}


class Said(msgspec.Struct):
    content: str = "-"


def test_an_item_comes_back_exactly(face: Face, place: Place) -> None:
    store = face.open(place.engine())
    store.get_or_create_session("alice", "trip")
    records = [
        user_message("fw", "Hello", ITEM),
        agent_response("fw", "Hi", {"b": 1, "a": 2}),
        event("fw", TOOL_CALL, ITEM),
        aside("fw", TOOL_CALL, {"name": "x"}),
        user_message("other", "?", ITEM),
        user_message("fw", "null", None),
    ]
    store.append("trip", *records)
    found = store.timeline_as("trip", carrier_of("fw"))
    assert [seq for seq, _ in found] == [1, 2, 3, 4, 5, 6]
    assert [carrier.item for _, carrier in found if not carrier.is_foreign and not carrier.is_aside] == [
        ITEM,
        {"b": 1, "a": 2},
        ITEM,
        None,
    ]
    assert [carrier.is_foreign for _, carrier in found] == [False] * 4 + [True, False]
    assert [carrier.is_aside for _, carrier in found] == [False] * 3 + [True, False, False]
    assert [entry.record for entry in store.timeline("trip")] == records


def test_a_record_tells_its_item() -> None:
    assert item_in("fw", user_message("fw", "Hello", ITEM)) == ITEM
    assert item_in("fw", event("fw", "x", ITEM)) == ITEM
    assert item_in("other", event("fw", "x", ITEM)) is msgspec.UNSET
    assert item_in("fw", aside("fw", "x", 1)) is msgspec.UNSET
    assert is_aside("fw", aside("fw", "x", 1))
    assert not is_aside("fw", UserMessage("plain"))


def test_notes_stay_beside_the_item() -> None:
    assert user_message("fw", "Hello", 1, archived=True).extra == {"fw": 1, "archived": True}


@pytest.mark.parametrize("bad", [b"x", float("nan"), 2**64, {1: 2}, object(), "\ud800"])
def test_what_is_not_json_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidValue):
        user_message("fw", "text", {"item": bad})
    with pytest.raises(InvalidValue):
        event("fw", "kind", bad)


@pytest.mark.parametrize(
    ("name", "kind"), [("web_search", "web_search"), ("user", "item"), ("", "item"), (None, "item")]
)
def test_a_frameworks_own_name_is_the_kind_where_it_can_be(name: Any, kind: str) -> None:
    assert kind_for(name) == kind


def test_records_are_read_as_any_type_from_anywhere(face: Face, place: Place) -> None:
    store = face.open(place.engine())
    store.get_or_create_session("alice", "trip")
    store.append("trip", *(UserMessage(str(n)) if n % 3 else Event("tick", n) for n in range(10)))
    assert [(seq, said.content) for seq, said in store.timeline_as("trip", Said)][:4] == [
        (1, "-"),
        (2, "1"),
        (3, "2"),
        (4, "-"),
    ]
    assert [seq for seq, _ in store.timeline_as("trip", Said, after=3, before=9, limit=2)] == [7, 8]
    assert store.timeline_as("trip", Said, limit=0) == []
    assert len(store.timeline_as("trip", msgspec.Raw)) == 10
    with pytest.raises(SessionNotFound):
        store.timeline_as("other", Said)
    with pytest.raises(InvalidValue):
        store.timeline_as("trip", Said, limit=-1)


def test_a_record_that_is_not_of_the_type_is_left_out_and_named(
    face: Face, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store = face.open(place.engine())
    store.get_or_create_session("alice", "trip")
    store.append("trip", Event("n", 1), UserMessage("two"), Event("n", "three"), Event("n", 4))

    class Number(msgspec.Struct):
        data: int = 0

    with caplog.at_level(logging.WARNING, "statestore"):
        assert [(seq, number.data) for seq, number in store.timeline_as("trip", Number)] == [(1, 1), (2, 0), (4, 4)]
    assert "session trip: record 3 cannot be read, and is left out" in caplog.text


def test_a_part_of_a_session_is_changed_without_loading_the_rest(place: Place) -> None:
    store, other = StateStore.open(place.engine()), StateStore.open(place.engine())
    store.get_or_create_session("alice", "trip")
    store.append("trip", *(UserMessage(str(n)) for n in range(5)))
    seen: list[int] = []

    def change(session: Any) -> None:
        seen.append(len(session.user_messages))
        if len(seen) == 1:
            other.append("trip", UserMessage("meanwhile"))
        session.set_metadata("visits", (session.get_metadata("visits") or 0) + 1)
        session.user_messages.pop()

    store.update_session_with("trip", change, last=2)
    assert seen == [2, 2]
    loaded = store.load_session("trip")
    assert loaded is not None
    assert loaded.metadata == {"visits": 1}
    assert [message.content for message in loaded.user_messages] == ["0", "1", "2", "3", "4"]
    other.close()
    store.close()
