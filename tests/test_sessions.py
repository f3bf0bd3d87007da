"""A `Session` object knows what of it the store has; a save sends the difference and merges it."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import time
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NoReturn

import msgspec
import pytest

from faces import Place
from statestore import (
    AgentResponse,
    Event,
    InvalidValue,
    Session,
    SessionConflict,
    SessionNotFound,
    StateStore,
    UserMessage,
    ledger,
)
from statestore.history import History
from statestore.session import ledger_of


def loaded(store: StateStore, session_id: str = "s", **options: Any) -> Session:
    session = store.load_session(session_id, **options)
    assert session is not None
    return session


def contents(session: Session) -> list[str]:
    return [message.content for message in session.user_messages]


def told(store: StateStore, session_id: str = "s") -> list[str]:
    """What is stored, in order: contents of messages and responses, kinds of events."""
    return [getattr(entry.record, "content", entry.kind) for entry in store.timeline(session_id)]


@pytest.fixture
def session(store: StateStore) -> Session:
    """A stored session of three messages and two responses: a, A, b, B, c."""
    session = Session("alice", "s")
    for content in ("a", "A", "b", "B", "c"):
        if content.islower():
            session.add_user_message(content)
        else:
            session.add_agent_response(content)
    store.save_session(session)
    return session


# -- what a session is --------------------------------------------------------------------------------------------


def test_a_new_session_is_empty_and_not_stored() -> None:
    before = datetime.now(UTC)
    session = Session.new("alice")
    assert session.user_messages == session.agent_responses == session.events == session.timeline == []
    assert session.metadata == {}
    assert session.version is None
    assert session.is_empty
    assert session.created_at == session.updated_at
    assert before - timedelta(seconds=1) < session.created_at <= datetime.now(UTC)
    assert Session.new("alice").id != session.id
    assert Session.with_id("alice", "x").id == "x"


def test_an_id_is_a_plain_text_so_that_every_encoder_takes_it(store: StateStore) -> None:
    class Id(str):
        __slots__ = ()

    for session in (Session("alice"), Session("alice", Id("x")), store.get_or_create_session("alice", Id("y"))):
        assert msgspec.json.decode(msgspec.json.encode(session.id)) == session.id
    assert msgspec.json.encode(loaded(store, "y").id) == b'"y"'


def test_id_and_user_never_change() -> None:
    session = Session("alice", "s")
    for name in ("id", "user_id", "created_at", "exchange_count", "is_empty", "timeline"):
        with pytest.raises(AttributeError):
            setattr(session, name, "other")
    with pytest.raises(AttributeError):
        session.unknown = 1  # type: ignore[attr-defined]


def test_an_exchange_is_a_message_with_its_response() -> None:
    session = Session("alice")
    session.add_user_message("a")
    assert (session.exchange_count, session.is_empty) == (0, False)
    session.add_agent_response("A")
    session.add_agent_response("A2")
    assert session.exchange_count == 1


def test_every_change_through_a_method_moves_updated_at() -> None:
    session = Session("alice")
    for change in (
        lambda: session.add_user_message("a"),
        lambda: session.add_agent_response("A"),
        lambda: session.add_event("e"),
        lambda: session.set_active_seed("x"),
        lambda: session.set_active_persona("x"),
        lambda: session.set_metadata("k", 1),
        session.touch,
    ):
        before = session.updated_at
        change()
        assert session.updated_at > before


def test_active_fields_are_set_and_unset() -> None:
    session = Session("alice")
    session.set_active_seed("seed")
    session.set_active_persona("persona")
    assert (session.active_seed_id, session.active_persona_id) == ("seed", "persona")
    session.set_active_seed(None)
    session.set_active_persona(None)
    assert (session.active_seed_id, session.active_persona_id) == (None, None)


# -- timestamps ---------------------------------------------------------------------------------------------------


def test_timestamps_rise_strictly_even_when_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: now)
    session = Session("alice")
    for step in (0, 0, -3_600_000_000_000, 1, 999, -1, 5_000):
        now += step
        session.add_user_message("a")
        session.add_agent_response("A")
        session.add_event("e")
    moments = [entry.record.timestamp for entry in session.timeline]
    assert len(moments) == 21
    assert all(earlier < later for earlier, later in pairwise(moments))
    assert session.updated_at > moments[-1]


def test_timestamps_rise_after_a_load_when_the_clock_is_set_back(
    store: StateStore, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    again = loaded(store)
    message = again.add_user_message("d")
    assert message.timestamp > session.updated_at
    store.save_session(again)
    assert told(store) == ["a", "A", "b", "B", "c", "d"]
    assert loaded(store).updated_at == again.updated_at


def test_timestamps_rise_after_a_record_from_the_future() -> None:
    session = Session("alice")
    session.add_user_message("a")
    future = datetime.now(UTC) + timedelta(days=1)
    session.add_agent_response(AgentResponse("from a clock that is ahead", timestamp=future))
    assert session.add_user_message("b").timestamp > future


def test_updated_at_that_was_assigned_does_not_go_back_by_itself() -> None:
    session = Session("alice")
    session.add_user_message("a")
    future = datetime.now(UTC) + timedelta(days=1)
    session.updated_at = future
    session.add_user_message("b")
    assert session.updated_at > future


def test_updated_at_never_goes_back_in_the_store(store: StateStore, session: Session) -> None:
    stored = loaded(store).updated_at
    session.updated_at = datetime(2020, 1, 1, tzinfo=UTC)
    session.set_metadata("k", 1)
    session.updated_at = datetime(2020, 1, 1, tzinfo=UTC)
    store.save_session(session)
    assert loaded(store).updated_at >= stored
    assert loaded(store).metadata == {"k": 1}


# -- saving the difference ----------------------------------------------------------------------------------------


def test_saving_twice_writes_nothing(store: StateStore, session: Session) -> None:
    version = session.version
    store.save_session(session)
    store.update_session(session)
    assert session.version == version == loaded(store).version


@pytest.mark.parametrize(
    "value", [(1, 2), {"a": (1,)}, datetime(2026, 1, 1, tzinfo=UTC), 1.0, 10**19, -0.0, {"b": 1, "a": 2}, [], None]
)
def test_saving_twice_writes_nothing_whatever_the_metadata_are(store: StateStore, value: Any) -> None:
    session = Session("alice", "s")
    session.set_metadata("k", value)
    store.save_session(session)
    version = session.version
    store.save_session(session)
    assert session.version == version


def test_only_touching_a_session_is_a_change(store: StateStore, session: Session) -> None:
    session.touch()
    store.save_session(session)
    assert loaded(store).updated_at == session.updated_at


def test_nested_metadata_changed_in_place_are_noticed(store: StateStore, session: Session) -> None:
    session.set_metadata("k", {"list": [1, {"deep": 1}]})
    store.save_session(session)
    again = loaded(store)
    again.metadata["k"]["list"][1]["deep"] = 2
    before = again.updated_at
    store.save_session(again)
    assert loaded(store).metadata == {"k": {"list": [1, {"deep": 2}]}}
    assert loaded(store).updated_at > before, "a change moves updated_at, however it was made"


@pytest.mark.parametrize(
    ("old", "new"),
    [(1, True), (True, 1), (1, 1.0), (1.0, 1), (0, False), (0, -0.0), (0.0, -0.0), ([1], [True]), (None, 0), ("1", 1)],
)
def test_a_value_of_another_type_is_a_change(store: StateStore, session: Session, old: Any, new: Any) -> None:
    session.set_metadata("k", {"v": old})
    store.save_session(session)
    again = loaded(store)
    again.metadata["k"] = {"v": new}
    store.save_session(again)
    assert json.dumps(loaded(store).metadata["k"]["v"]) == json.dumps(new)


def test_fields_that_were_changed_are_sent_and_others_are_not(
    store: StateStore, other: StateStore, session: Session
) -> None:
    theirs = loaded(other)
    theirs.set_active_seed("theirs")
    theirs.set_metadata("theirs", 1)
    theirs.project_id = "theirs"
    other.save_session(theirs)
    session.set_active_persona("ours")
    session.set_metadata("ours", 2)
    store.save_session(session)
    final = loaded(store)
    assert (final.active_seed_id, final.active_persona_id, final.project_id) == ("theirs", "ours", "theirs")
    assert final.metadata == {"theirs": 1, "ours": 2}


def test_the_last_writer_of_one_key_wins(store: StateStore, other: StateStore, session: Session) -> None:
    theirs = loaded(other)
    theirs.set_metadata("k", "theirs")
    other.save_session(theirs)
    session.set_metadata("k", "ours")
    store.save_session(session)
    assert loaded(store).metadata == {"k": "ours"}


def test_a_key_that_was_removed_is_removed_and_no_other(store: StateStore, other: StateStore, session: Session) -> None:
    session.metadata = {"a": 1, "b": 2}
    store.save_session(session)
    theirs = loaded(other)
    theirs.set_metadata("c", 3)
    other.save_session(theirs)
    session.metadata = {"b": 2}
    store.save_session(session)
    assert loaded(store).metadata == {"b": 2, "c": 3}


def test_two_writers_both_keep_all_their_messages(store: StateStore, other: StateStore, session: Session) -> None:
    theirs = loaded(other)
    for number in range(3):
        session.add_user_message(f"ours {number}")
        store.save_session(session)
        theirs.add_user_message(f"theirs {number}")
        other.save_session(theirs)
    final = contents(loaded(store))
    assert final[:3] == ["a", "b", "c"]
    assert [c for c in final if c.startswith("ours")] == ["ours 0", "ours 1", "ours 2"]
    assert [c for c in final if c.startswith("theirs")] == ["theirs 0", "theirs 1", "theirs 2"]
    assert len(final) == 9


# -- history ------------------------------------------------------------------------------------------------------

EDITS: dict[str, tuple[Callable[[History[UserMessage]], Any], list[str]]] = {
    "del": (lambda h: h.__delitem__(0), ["b", "c"]),
    "del slice": (lambda h: h.__delitem__(slice(0, 2)), ["c"]),
    "pop": (lambda h: h.pop(), ["a", "b"]),
    "pop first": (lambda h: h.pop(0), ["b", "c"]),
    "remove": (lambda h: h.remove(h[1]), ["a", "c"]),
    "clear": (lambda h: h.clear(), []),
    "reverse": (lambda h: h.reverse(), ["c", "b", "a"]),
    "sort": (lambda h: h.sort(key=lambda m: m.content, reverse=True), ["c", "b", "a"]),
    "insert": (lambda h: h.insert(1, UserMessage("new")), ["a", "new", "b", "c"]),
    "replace": (lambda h: h.__setitem__(1, UserMessage("new")), ["a", "new", "c"]),
    "replace slice": (lambda h: h.__setitem__(slice(1, 3), [UserMessage("new")]), ["a", "new"]),
    "times two": (lambda h: h.__imul__(2), ["a", "b", "c", "a", "b", "c"]),
    "times none": (lambda h: h.__imul__(0), []),
}


@pytest.mark.parametrize(("edit", "left"), EDITS.values(), ids=EDITS)
def test_an_edit_of_history_is_stored(
    store: StateStore, session: Session, edit: Callable[[History[UserMessage]], Any], left: list[str]
) -> None:
    again = loaded(store)
    edit(again.user_messages)
    again.add_user_message("last")
    store.save_session(again)
    final = loaded(store)
    assert contents(final) == [*left, "last"]
    assert [response.content for response in final.agent_responses] == ["A", "B"], "other lists stay"
    again.add_user_message("more")
    store.save_session(again)
    assert contents(loaded(store)) == [*left, "last", "more"], "and the object goes on from there"
    version = again.version
    store.save_session(again)
    assert again.version == version


REWRITES = {name: edit for name, edit in EDITS.items() if name != "times two"}  # which only adds


@pytest.mark.parametrize(("edit", "left"), REWRITES.values(), ids=REWRITES)
def test_an_edit_of_history_needs_the_version_that_was_loaded(
    store: StateStore,
    other: StateStore,
    session: Session,
    edit: Callable[[History[UserMessage]], Any],
    left: list[str],
) -> None:
    again = loaded(store)
    edit(again.user_messages)
    other.append("s", UserMessage("theirs"))
    with pytest.raises(SessionConflict):
        store.save_session(again)
    assert contents(loaded(store)) == ["a", "b", "c", "theirs"], "nothing is lost"
    assert contents(again) == left, "here neither"


@pytest.mark.parametrize("edit", [edit for edit, _ in EDITS.values()], ids=EDITS)
def test_an_edit_of_what_is_not_saved_yet_is_no_rewrite(
    store: StateStore, other: StateStore, edit: Callable[[History[UserMessage]], Any]
) -> None:
    mine = Session("alice", "s")
    mine.add_agent_response("first")
    store.save_session(mine)
    for content in ("a", "b", "c"):
        mine.add_user_message(content)
    edit(mine.user_messages)
    other.append("s", UserMessage("theirs"))
    expected = contents(mine)
    store.save_session(mine)
    assert contents(loaded(store)) == ["theirs", *expected]


def test_an_edit_that_comes_to_nothing_is_no_rewrite(store: StateStore, other: StateStore, session: Session) -> None:
    message = session.user_messages.pop()
    session.user_messages.append(message)
    session.user_messages.reverse()
    session.user_messages.reverse()
    other.append("s", UserMessage("theirs"))
    store.save_session(session)
    assert contents(loaded(store)) == ["a", "b", "c", "theirs"]


def test_after_a_merge_the_object_may_append_but_not_rewrite(
    store: StateStore, other: StateStore, session: Session
) -> None:
    other.append("s", UserMessage("theirs"))
    session.add_user_message("d")
    store.save_session(session)
    assert session.version is None
    session.add_user_message("e")
    store.save_session(session)
    session.user_messages.pop()
    with pytest.raises(SessionConflict, match="load it again"):
        store.save_session(session)
    assert contents(loaded(store)) == ["a", "b", "c", "theirs", "d", "e"]
    again = loaded(store)
    again.user_messages.pop()
    store.save_session(again)
    assert contents(loaded(store)) == ["a", "b", "c", "theirs", "d"]


def test_records_with_keys_keep_them_through_a_rewrite(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("a")
    session.add_user_message("b", key="k")
    store.save_session(session)
    del session.user_messages[0]
    store.save_session(session)
    store.append("s", UserMessage("b again"), keys=["k"])
    assert told(store) == ["b"]


def test_the_lists_take_only_their_own_kind_of_record() -> None:
    session = Session("alice")
    for bad in ("text", AgentResponse("r"), Event("e"), None):
        for add in (
            lambda bad=bad: session.user_messages.append(bad),
            lambda bad=bad: session.user_messages.extend([bad]),
            lambda bad=bad: session.user_messages.insert(0, bad),
            lambda bad=bad: session.user_messages.__iadd__([bad]),
            lambda bad=bad: session.user_messages.__setitem__(slice(0, 0), [bad]),
        ):
            with pytest.raises(TypeError, match="UserMessage"):
                add()
    with pytest.raises(TypeError, match="UserMessage"):
        session.user_messages.extend([UserMessage("good"), "bad"])  # type: ignore[list-item]
    assert session.user_messages == []


def test_what_an_interrupted_add_left_in_a_list_is_stored_in_its_place(
    store: StateStore, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as interrupted:
        interrupted.setattr(ledger, "Pending", _interrupt)  # which is made when the list has the record already
        with pytest.raises(KeyboardInterrupt):
            session.add_user_message("d")
    for following in ("e", "f"):
        session.add_user_message(following)
        store.save_session(session)
        assert contents(loaded(store)) == contents(session)
    assert contents(session) == ["a", "b", "c", "d", "e", "f"]
    assert [entry.seq for entry in session.timeline] == [entry.seq for entry in store.timeline("s")]


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def test_lists_grow_by_extend_and_by_plus(store: StateStore) -> None:
    session = Session("alice", "s")
    session.user_messages.extend([UserMessage("a"), UserMessage("b")])
    session.user_messages += [UserMessage("c")]
    store.save_session(session)
    assert contents(loaded(store)) == ["a", "b", "c"]


def test_a_list_that_is_put_in_the_place_of_another_is_what_is_stored(store: StateStore, session: Session) -> None:
    session.user_messages = session.user_messages[1:]
    session.agent_responses = (response for response in session.agent_responses if response.content == "A")
    for wrong in ([UserMessage("d"), "text"], [AgentResponse("d")], None):
        with pytest.raises(TypeError):
            session.user_messages = wrong  # type: ignore[assignment]
    store.save_session(session)
    assert told(store) == ["A", "b", "c"]
    assert contents(session) == ["b", "c"]


def test_slices_and_copies_of_a_list_are_plain_lists(session: Session) -> None:
    copies = [session.user_messages[:], session.user_messages.copy(), list(session.user_messages)]
    for plain in copies:
        plain.clear()
    assert contents(session) == ["a", "b", "c"]


# -- deleted, created anew ----------------------------------------------------------------------------------------


def test_saving_a_deleted_session_says_so(store: StateStore, other: StateStore, session: Session) -> None:
    other.delete_session("s")
    session.add_user_message("d")
    with pytest.raises(SessionNotFound):
        store.save_session(session)
    assert not store.session_exists("s")
    store.save_session(session, recreate=True)
    assert told(store) == ["a", "A", "b", "B", "c", "d"]
    session.add_user_message("e")
    session.user_messages.pop(0)
    store.save_session(session)
    assert told(store) == ["A", "b", "B", "c", "d", "e"]


def test_recreating_keeps_all_fields(store: StateStore) -> None:
    session = Session("alice", "s")
    session.set_active_seed("seed")
    session.project_id = "p"
    session.set_metadata("k", [1, 2.50])
    session.add_event("e", {"x": 1}, key="k")
    store.save_session(session)
    before = store.load_json("sessions", "s")
    store.delete_session("s")
    session.set_active_persona("p")
    store.save_session(session, recreate=True)
    after = store.load_json("sessions", "s")
    assert after.pop("active_persona_id") == "p"
    assert after | {"updated_at": ""} == before | {"updated_at": ""}
    assert store.append("s", Event("e"), keys=["k"]) == [1]


def test_recreating_stores_a_session_that_did_not_change_either(store: StateStore, session: Session) -> None:
    store.delete_session("s")
    store.save_session(session, recreate=True)
    assert told(store) == ["a", "A", "b", "B", "c"]


def test_saving_what_did_not_change_does_not_ask_whether_it_is_there(store: StateStore, session: Session) -> None:
    store.delete_session("s")
    store.save_session(session)
    assert not store.session_exists("s")


def test_a_new_session_with_an_id_that_is_taken_is_a_conflict(store: StateStore, session: Session) -> None:
    with pytest.raises(SessionConflict):
        store.save_session(Session("alice", "s"))
    assert told(store) == ["a", "A", "b", "B", "c"]


# -- the order of things ------------------------------------------------------------------------------------------


def test_the_timeline_is_in_order_before_and_after_a_save(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_event("e1")
    session.add_user_message("a")
    session.add_agent_response("A")
    unsaved = [(entry.seq, entry.kind) for entry in session.timeline]
    assert unsaved == [(None, "e1"), (None, "user"), (None, "agent")]
    store.save_session(session)
    assert [(entry.seq, entry.kind) for entry in session.timeline] == [(1, "e1"), (2, "user"), (3, "agent")]
    session.add_event("e2")
    session.add_user_message("b")
    expected = [(1, "e1"), (2, "user"), (3, "agent"), (None, "e2"), (None, "user")]
    assert [(entry.seq, entry.kind) for entry in session.timeline] == expected
    store.save_session(session)
    assert [(e.seq, e.kind) for e in store.timeline("s")] == [(e.seq, e.kind) for e in session.timeline]
    assert [entry.record for entry in store.timeline("s")] == [entry.record for entry in loaded(store).timeline]


def test_order_is_the_order_of_adding_whatever_the_timestamps_say(store: StateStore) -> None:
    session = Session("alice", "s")
    session.agent_responses.append(AgentResponse("A", timestamp=datetime(2030, 1, 1, tzinfo=UTC)))
    session.user_messages.append(UserMessage("a", timestamp=datetime(2020, 1, 1, tzinfo=UTC)))
    session.events.append(Event("e", timestamp=datetime(2025, 1, 1, tzinfo=UTC)))
    session.user_messages.append(UserMessage("b", timestamp=datetime(2019, 1, 1, tzinfo=UTC)))
    store.save_session(session)
    assert told(store) == ["A", "a", "e", "b"]
    store.append("s", AgentResponse("B", timestamp=datetime(2000, 1, 1, tzinfo=UTC)))
    assert told(store) == ["A", "a", "e", "b", "B"]
    assert [entry.seq for entry in store.timeline("s")] == [1, 2, 3, 4, 5]


def test_one_record_may_be_said_twice(store: StateStore) -> None:
    session = Session("alice", "s")
    message = session.add_user_message("a")
    session.add_agent_response("A")
    store.save_session(session)
    session.user_messages.append(message)
    assert [getattr(entry.record, "content", "") for entry in session.timeline] == ["a", "A", "a"]
    store.save_session(session)
    assert told(store) == ["a", "A", "a"]


def test_the_timeline_is_paged_backwards(store: StateStore, session: Session) -> None:
    page = store.timeline("s", limit=2)
    pages = [page]
    while page := store.timeline("s", before=page[0].seq, limit=2):
        pages.append(page)
    assert [[getattr(entry.record, "content", "") for entry in page] for page in pages] == [
        ["B", "c"],
        ["A", "b"],
        ["a"],
    ]
    assert store.timeline("s", limit=0) == []
    assert store.timeline("s", before=1) == []
    with pytest.raises(SessionNotFound):
        store.timeline("absent")


def test_the_timeline_tells_what_came_since(store: StateStore, session: Session) -> None:
    seen = store.timeline("s")[-1].seq
    assert store.timeline("s", after=seen) == []
    store.append("s", AgentResponse("C"), UserMessage("d"))
    assert [getattr(entry.record, "content", "") for entry in store.timeline("s", after=seen)] == ["C", "d"]
    assert [entry.seq for entry in store.timeline("s", after=1, before=5, limit=2)] == [3, 4]
    with pytest.raises(InvalidValue, match="after is a whole number"):
        store.timeline("s", after=-1)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9, 100])
def test_reading_on_in_pages_misses_none(store: StateStore, size: int) -> None:
    """Also where numbers are missing: those of a rewind, and before it."""
    store.get_or_create_session("alice", "long")
    for turn in range(20):
        store.append("long", UserMessage(f"{turn}"))
        if turn in (5, 6, 14):
            store.rewind_session("long", to=3 if turn == 5 else store.timeline("long")[-2].seq)
    store.append("long", *(UserMessage(f"more {turn}") for turn in range(7)))
    everything = [(seq, getattr(record, "content", "")) for seq, _, record in store.timeline("long")]
    assert max(seq for seq, _ in everything) > len(everything) + 3, "some numbers are not in use"
    found: list[tuple[int | None, str]] = []
    while page := store.timeline("long", after=found[-1][0] if found else 0, limit=size):
        assert len(page) <= size
        found += ((seq, getattr(record, "content", "")) for seq, _, record in page)
    assert found == everything
    assert [seq for seq, _ in store.timeline_as("long", dict[str, Any], after=0, limit=size)] == [
        seq for seq, _ in everything[:size]
    ]
    assert store.timeline("long", after=0, limit=0) == []


# -- a part of a long session -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "users", "agents"), [(0, "", ""), (1, "c", ""), (2, "c", "B"), (5, "abc", "AB"), (9, "abc", "AB")]
)
def test_the_newest_part_is_loaded_and_grows(
    store: StateStore, session: Session, last: int, users: str, agents: str
) -> None:
    part = loaded(store, last=last)
    assert "".join(contents(part)) == users
    assert "".join(response.content for response in part.agent_responses) == agents
    part.add_user_message("d")
    store.save_session(part)
    assert told(store) == ["a", "A", "b", "B", "c", "d"]
    part.add_agent_response("D")
    store.save_session(part)
    assert told(store) == ["a", "A", "b", "B", "c", "d", "D"]


def test_an_edit_of_the_newest_part_leaves_the_rest(store: StateStore, session: Session) -> None:
    part = loaded(store, last=3)
    part.user_messages[0] = UserMessage("b2")
    store.save_session(part)
    assert told(store) == ["a", "A", "b2", "B", "c"]
    part.user_messages.clear()
    part.agent_responses.clear()
    store.save_session(part)
    assert told(store) == ["a", "A"]


def test_a_part_cannot_be_stored_anew(store: StateStore, session: Session) -> None:
    part = loaded(store, last=2)
    part.add_user_message("d")
    store.delete_session("s")
    with pytest.raises(SessionNotFound, match="newest part"):
        store.save_session(part, recreate=True)
    assert not store.session_exists("s")


def test_the_title_follows_an_edit_of_a_part(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_agent_response("Hello")
    session.add_user_message("first")
    store.save_session(session)
    part = loaded(store, last=1)
    part.user_messages[0] = UserMessage("second")
    store.save_session(part)
    assert [summary.title for summary in store.list_sessions()] == ["second"]


def test_a_message_whose_key_is_known_gives_no_title(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_agent_response("Hello", key="k")
    session.add_user_message("first")
    store.save_session(session)
    session.add_user_message("not stored", key="k")
    session.user_messages.reverse()
    store.save_session(session)
    assert told(store) == ["Hello", "first"]
    assert [summary.title for summary in store.list_sessions()] == ["first"]


# -- records ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("record", [UserMessage("a"), AgentResponse("a", "s", "x", "y", True), Event("e", {"a": [1]})])
def test_records_are_frozen_and_so_are_their_copies(record: Any) -> None:
    for one in (record, copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert one == record
        assert type(one) is type(record)
        assert hash(one) == hash(record)
        assert one.timestamp_text == record.timestamp_text
        for name in ("content", "timestamp", "timestamp_text", "kind", "data"):
            with pytest.raises(AttributeError):
                setattr(one, name, "other")


def test_the_data_of_an_event_cannot_be_changed_in_place(store: StateStore) -> None:
    data = {"list": [1]}
    session = Session("alice", "s")
    event = session.add_event("e", data)
    data["list"].append(2)
    event.data["list"].append(3)
    store.save_session(session)
    assert event.data == loaded(store).events[0].data == {"list": [1]}


def test_records_are_equal_by_what_they_say() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert UserMessage("a", moment) == UserMessage("a", moment)
    assert UserMessage("a", moment) != UserMessage("b", moment)
    assert UserMessage("a", moment) != AgentResponse("a", timestamp=moment)
    assert Event("e", {"a": 1}, moment) == Event("e", {"a": 1}, moment)
    assert Event("e", 1, moment) != Event("e", True, moment)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_object_refuses_to_be_copied(session: Session, duplicate: Callable[[Session], Any]) -> None:
    """Two copies would not know what the other one saved, and store it twice or not at all."""
    with pytest.raises(TypeError, match="fork_session"):
        duplicate(session)


# -- idempotency keys ---------------------------------------------------------------------------------------------


def test_a_key_is_stored_once(store: StateStore, other: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    assert store.append("s", UserMessage("a"), AgentResponse("A"), keys=["k1", "k2"]) == [1, 2]
    assert other.append("s", UserMessage("a again"), UserMessage("b"), keys=["k1", None]) == [1, 3]
    assert other.append("s", Event("e"), keys=["k2"]) == [2]
    assert store.append("s", Event("x"), Event("y"), keys=["k3", "k3"]) == [4, 4]
    with pytest.raises(InvalidValue, match="'k4' is given to two records"):
        store.append("s", UserMessage("q"), AgentResponse("a"), keys=["k4", "k4"])
    assert told(store) == ["a", "A", "b", "x"]


def test_a_key_holds_for_a_session_object_too(store: StateStore, other: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("a", key="k")
    store.save_session(session)
    twin = loaded(other)
    twin.add_user_message("a again", key="k")
    twin.add_user_message("b")
    other.save_session(twin)
    assert told(store) == ["a", "b"]
    assert twin.version is None, "the object holds one record too many"


def test_a_key_belongs_to_its_session(store: StateStore) -> None:
    for session_id in ("s", "t"):
        store.save_session(Session("alice", session_id))
        assert store.append(session_id, UserMessage("a"), keys=["k"]) == [1]


def test_a_key_is_free_again_when_its_record_is_gone(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    store.append("s", UserMessage("a"), keys=["k"])
    store.rewind_session("s", to=0)
    assert store.append("s", UserMessage("b"), keys=["k"]) == [2], "and a number never comes back"
    assert told(store) == ["b"]


def test_an_empty_key_is_refused(store: StateStore) -> None:
    with pytest.raises(InvalidValue, match="key"):
        Session("alice").add_user_message("a", key="")


# -- append and update --------------------------------------------------------------------------------------------


def test_appending_needs_no_load_and_moves_updated_at(store: StateStore, session: Session) -> None:
    before = loaded(store).updated_at
    assert store.append("s", UserMessage("d"), AgentResponse("D"), Event("e")) == [6, 7, 8]
    assert store.append("s") == []
    assert told(store)[-3:] == ["d", "D", "e"]
    assert loaded(store).updated_at > before
    with pytest.raises(SessionNotFound):
        store.append("absent", UserMessage("d"))


def test_a_counter_counts_every_time(store: StateStore, place: Place, session: Session) -> None:
    calls = 0
    other = StateStore.open(place.engine())

    def count(fresh: Session) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:  # somebody comes between, once
            other.update_session_with("s", count)
        fresh.set_metadata("n", fresh.metadata.get("n", 0) + 1)

    updated = store.update_session_with("s", count)
    assert updated.metadata == {"n": 2}
    assert loaded(store).metadata == {"n": 2}
    assert calls == 3
    other.close()
    with pytest.raises(SessionNotFound):
        store.update_session_with("absent", count)


def test_an_update_that_fails_writes_nothing(store: StateStore, session: Session) -> None:
    def fail(fresh: Session) -> None:
        fresh.set_metadata("n", 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.update_session_with("s", fail)
    assert loaded(store).metadata == {}


# -- what listings call it ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("project_id", "metadata", "expected"),
    [
        (None, {}, None),
        ("own", {"project_id": "m", "project_ids": "l"}, "own"),
        (None, {"project_id": "m", "project_ids": "l"}, "m"),
        (None, {"project_ids": "one"}, "one"),
        (None, {"project_ids": "one,two"}, "one"),
        (None, {"project_ids": ["one", "two"]}, "one"),
        (None, {"project_ids": []}, None),
        (None, {"project_ids": 42}, None),
        (None, {"project_ids": [42]}, None),
        (None, {"project_ids": None}, None),
    ],
)
def test_the_project_of_a_session(
    store: StateStore, project_id: str | None, metadata: dict[str, Any], expected: str | None
) -> None:
    session = Session("alice", "s")
    session.project_id = project_id
    session.metadata = metadata
    store.save_session(session)
    assert store.list_sessions()[0].project_id == expected
    if expected:
        assert [summary.id for summary in store.list_sessions(project_id=expected)] == ["s"]
        session.project_id = None
        session.metadata = {}
        store.save_session(session)
        assert store.list_sessions()[0].project_id is None


def test_the_title_of_a_session(store: StateStore) -> None:
    session = Session("alice", "s")

    def title() -> str | None:
        store.save_session(session)
        return store.list_sessions()[0].title

    assert title() is None
    session.add_agent_response("Welcome")
    assert title() is None
    session.add_user_message("\n  " + "x" * 59 + " y\nsecond line")
    assert title() == "x" * 59
    session.add_user_message("later")
    assert title() == "x" * 59
    session.set_metadata("title", "Chosen")
    assert title() == "Chosen"
    for nothing in ("", 42, None):
        session.set_metadata("title", nothing)
        assert title() == "x" * 59
    del session.user_messages[0]
    assert title() == "later"
    session.user_messages.clear()
    assert title() is None


def test_a_session_that_nobody_holds_is_gone_at_once_and_its_lists_are_plain_lists(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("a")
    store.save_session(session)
    messages, gone = session.user_messages, weakref.ref(ledger_of(session))
    gc.disable()
    try:
        del session
        assert gone() is None
    finally:
        gc.enable()
    messages.append(UserMessage("x"))
    messages.pop(0)
    assert [message.content for message in messages][-1] == "x"
