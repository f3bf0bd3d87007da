"""What ours promises beyond the contract: many writers, people who read, users, damage, agents that go on."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Any

import pytest

pytest.importorskip("strands")

from strands import Agent
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.running import loaded, output_of
from adapters.strands.test_repository import ANSWER, CALL, MESSAGES, QUESTION, RESULT, UNKNOWN, add
from adapters.strands.writers import SESSION, write_messages
from statestore import AgentResponse, Event, InvalidValue, StateStore, UserMessage, WrongUser
from statestore.adapters.dialects.strands import DIALECT
from statestore.adapters.handoff import messages_for, turns_in
from statestore.adapters.strands import StateStoreRepository, StateStoreSessionManager, StateStoreStorage
from statestore.adapters.turns import Said, ToolCall, ToolResult


def opened(store: Any, session_id: str = "trip", **options: Any) -> StateStoreRepository:
    repository = StateStoreRepository(store, **options)
    repository.create_session(Session(session_id, SessionType.AGENT))
    repository.create_agent(session_id, SessionAgent("skipper", {}, {}))
    return repository


def test_two_processes_lose_nothing(store_url: str) -> None:
    repository = opened(store_url, SESSION)
    for name in ("agent", "a", "b"):
        repository.create_agent(SESSION, SessionAgent(name, {}, {}))
    two_processes(write_messages, store_url)
    said = [one.message["content"][0]["text"] for one in repository.list_messages(SESSION, "agent")]
    assert len(said) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]
        agent = repository.read_agent(SESSION, name)
        assert agent is not None
        assert agent.state == {"count": WRITES}
    repository.close()


@pytest.mark.parametrize("between", [0, 40])
def test_a_redaction_hits_the_writers_own_message(sqlite_url: str, between: int) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        (mine,) = add(repository, QUESTION)
        add(repository, *[QUESTION] * between, agent="mate")
        add(repository, ANSWER)  # somebody else's, with the same number
        mine.redact_message = UNKNOWN
        repository.update_message("trip", "skipper", mine)
        assert [one.to_message() for one in repository.list_messages("trip", "skipper")] == [UNKNOWN, ANSWER]


def test_a_person_can_read_it(store_url: str) -> None:
    repository = opened(store_url, user_id="alice")
    add(repository, *MESSAGES)
    repository.close()
    seen = assert_readable(
        store_url, "trip", user="Which ferry arrives before noon?", agent="The 10:40.", word="ferry", event="tool_call"
    )
    assert "alice" in seen.ls
    assert "timetable" in seen.show
    assert "[image]" in seen.show


def test_what_was_redacted_is_not_shown(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        (question,) = add(repository, QUESTION)
        question.redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
        repository.update_message("trip", "skipper", question)
        session = store.load_session("trip")
        assert session is not None
        assert [message.content for message in session.user_messages] == ["[redacted]"]


def test_the_tool_calls_of_a_redacted_message_are_shown_no_more(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        _, call, _ = add(repository, QUESTION, CALL, RESULT)
        assert [entry.kind for entry in store.timeline("trip")] == ["user", "agent", "tool_call", "tool_result"]
        call.redact_message = ANSWER
        repository.update_message("trip", "skipper", call)
        assert [entry.kind for entry in store.timeline("trip")] == ["user", "agent", "tool_result"]
        session = store.load_session("trip")
        assert session is not None
        assert [entry.kind for entry in session.timeline] == ["user", "agent", "tool_result"]


def test_the_order_of_what_was_said_survives_a_redaction(store_url: str) -> None:
    with StateStore.open(store_url) as store:
        repository = opened(store)
        added = add(repository, *MESSAGES)
        before = [(entry.kind, entry.record.timestamp) for entry in store.timeline("trip")]
        for number in (3, 0, 6):
            added[number].redact_message = MESSAGES[number]  # another item, the same text
            repository.update_message("trip", "skipper", added[number])
            after = [(entry.kind, entry.record.timestamp) for entry in store.timeline("trip")]
            assert [kind for kind, _ in after] == [kind for kind, _ in before]
            assert sum(one != other for one, other in zip(before, after, strict=True)) == 1
            before = after


def test_what_lies_beside_a_redacted_message_keeps_its_key(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        (question,) = add(repository, QUESTION)
        store.append("trip", Event("feedback", 5), keys=["feedback"])
        question.redact_message = UNKNOWN
        repository.update_message("trip", "skipper", question)
        feedback = store.timeline("trip")[-1]
        assert feedback.kind == "feedback"
        assert store.append("trip", Event("feedback", 5), keys=["feedback"]) == [feedback.seq]


def test_a_users_session_is_not_anothers(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        alices, bobs = opened(store, user_id="alice"), StateStoreRepository(store, user_id="bob")
        add(alices, QUESTION)
        assert bobs.read_session("trip") is None
        with pytest.raises(WrongUser):
            bobs.create_session(Session("trip", SessionType.AGENT))
        with pytest.raises(SessionException):
            bobs.delete_session("trip")
        with pytest.raises((SessionException, WrongUser)):
            add(bobs, QUESTION)
        assert len(alices.list_messages("trip", "skipper")) == 1


def test_a_corrupt_message_names_itself_and_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    repository = opened(sqlite_url)
    add(repository, QUESTION, RESULT, ANSWER)
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:")) as database:
        database.execute("UPDATE records SET body = '{torn' WHERE place & 0xffffffff = 2")
    database.close()
    with caplog.at_level(logging.WARNING, "statestore"):
        found = repository.list_messages("trip", "skipper")
    assert [one.to_message() for one in found] == [QUESTION, ANSWER]
    assert "session trip: record 2 cannot be read" in caplog.text
    repository.close()


@pytest.mark.parametrize("session_id", ["team/alice", "..", "", "x" * 300, "a%2Fb", "naïve 東京"])
def test_any_text_is_a_session_id(sqlite_url: str, session_id: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store, session_id)
        repository.create_message(session_id, "skipper", SessionMessage.from_message(QUESTION, 0))
        found = repository.read_session(session_id)
        assert found is not None
        assert found.session_id == session_id
        assert repository.read_session(session_id + "/") is None
        assert len(repository.list_messages(session_id, "skipper")) == 1


def test_a_field_of_a_newer_version_is_passed_over(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        opened(store)
        store.append("trip", UserMessage("Hi", extra={"strands": {**SessionMessage(QUESTION, 0).to_dict(), "new": 1}}))
        (found,) = StateStoreRepository(store).list_messages("trip", "skipper")
        assert found.to_message() == QUESTION


def test_what_is_not_json_is_refused_before_anything_is_written(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        with pytest.raises(InvalidValue):
            repository.update_agent("trip", SessionAgent("skipper", {"x": object()}, {}))
        agent = repository.read_agent("trip", "skipper")
        assert agent is not None
        assert agent.state == {}


def test_text_and_tool_calls_are_handed_over_both_ways(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        add(opened(store), QUESTION, CALL, RESULT, ANSWER)
        session = store.load_session("trip")
        assert session is not None
        turns = turns_in(session)
        assert turns == [
            Said("user", "Which ferry arrives before noon?"),
            Said("assistant", "Let me look."),
            ToolCall("t1", "timetable", '{"before":"12:00"}'),
            ToolResult("t1", "10:40"),
            Said("assistant", "The 10:40."),
        ]
        assert messages_for("strands", session) == [QUESTION, CALL, RESULT, ANSWER]
        assert messages_for("openai-agents", session)[-1] == {"role": "assistant", "content": "The 10:40."}
        assert DIALECT.load(DIALECT.write(turns)) == [QUESTION, CALL, RESULT, ANSWER]


def test_results_of_one_turn_are_one_message() -> None:
    turns = [ToolCall("1", "a", "{}"), ToolCall("2", "b", "{}"), ToolResult("1", "x"), ToolResult("2", "y")]
    calls, results = (item["message"] for item in DIALECT.write(turns))
    assert [len(message["content"]) for message in (calls, results)] == [2, 2]


def test_what_others_wrote_is_part_of_the_conversation(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        repository = opened(store)
        add(repository, QUESTION)
        store.append("trip", AgentResponse("The 10:40."))
        add(repository, RESULT, first=2)
        found = repository.list_messages("trip", "skipper")
        assert [one.to_message() for one in found] == [QUESTION, ANSWER, RESULT]
        assert [one.message_id for one in found] == [0, 1, 2]


def test_a_session_of_another_framework_is_a_session(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        store.get_or_create_session("", "trip")
        store.append("trip", UserMessage("Which ferry arrives before noon?"))
        repository = StateStoreRepository(store)
        session = repository.read_session("trip")
        assert session is not None
        assert session.session_id == "trip"
        repository.create_agent("trip", SessionAgent("skipper", {}, {}))
        assert [one.to_message() for one in repository.list_messages("trip", "skipper")] == [QUESTION]


def test_an_agent_goes_on_where_it_stopped(store_url: str) -> None:
    model = loaded("strands_chat").ScriptedModel("The 10:40.", "Booked.")
    for number, prompt in enumerate(("Which ferry arrives before noon?", "Book it.")):
        manager = StateStoreSessionManager("trip", store_url)
        agent = Agent(model=model, session_manager=manager, agent_id="skipper", callback_handler=None)
        assert agent.state.get("turns") == (number or None)
        agent.state.set("turns", number + 1)
        agent(prompt)
        manager.close()
    assert model.inputs == [1, 3]


def begun(store: StateStore) -> None:
    """A conversation that another program began."""
    session = store.get_or_create_session("", "trip")
    session.add_user_message("Is there a ferry?")
    session.add_agent_response("At noon.")
    store.save_session(session)


def agent_in(store: StateStore, agent_id: str, *answers: str, messages: Any = None) -> Agent:
    model = loaded("strands_chat").ScriptedModel(*answers)
    manager = StateStoreSessionManager("trip", store)
    return Agent(model=model, messages=messages, session_manager=manager, agent_id=agent_id, callback_handler=None)


def texts(agent: Agent) -> list[str]:
    return [message["content"][0].get("text", "") for message in agent.messages]


@pytest.mark.parametrize("is_given", [True, False])
def test_a_new_agent_begins_with_what_others_wrote_and_stores_none_of_it_again(sqlite_url: str, is_given: bool) -> None:
    with StateStore.open(sqlite_url) as store:
        begun(store)
        before = store.timeline("trip")
        session = store.load_session("trip")
        assert session is not None
        messages = messages_for("strands", session) if is_given else None
        agent = agent_in(store, "skipper", "Booked.", messages=messages)
        assert texts(agent) == ["Is there a ferry?", "At noon."]
        assert store.timeline("trip") == before
        agent("Book it.")
        assert [entry.kind for entry in store.timeline("trip")] == ["user", "agent", "user", "agent"]
        found = StateStoreRepository(store).list_messages("trip", "skipper")
        assert [one.message_id for one in found] == [0, 1, 2, 3]
        assert texts(agent_in(store, "skipper")) == ["Is there a ferry?", "At noon.", "Book it.", "Booked."]


def test_a_new_agent_is_given_what_another_agent_said_too(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        begun(store)
        agent_in(store, "skipper", "Booked.")("Book it.")
        session = store.load_session("trip")
        assert session is not None
        mate = agent_in(store, "mate", messages=messages_for("strands", session))
        assert texts(mate) == ["Is there a ferry?", "At noon.", "Book it.", "Booked."]
        assert texts(agent_in(store, "mate")) == texts(mate) == texts(agent_in(store, "skipper"))


def test_a_new_agent_that_brings_other_messages_keeps_them(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        begun(store)
        agent = agent_in(store, "skipper", messages=[QUESTION])
        assert texts(agent) == ["Which ferry arrives before noon?"]
        assert len(store.timeline("trip")) == 3


def test_snapshots_live_in_the_storage(store_url: str) -> None:
    snapshots = pytest.importorskip(
        "strands.session.snapshot_session_manager", reason="Strands has snapshots from 1.51 on"
    )
    model = loaded("strands_chat").ScriptedModel("The 10:40.", "Booked.")

    async def scene() -> None:
        for _ in range(2):
            storage = StateStoreStorage(store_url)
            manager = snapshots.SnapshotSessionManager("trip", storage=storage)
            agent = Agent(model=model, session_manager=manager, agent_id="skipper", callback_handler=None)
            await agent.invoke_async("Which ferry?")
            assert await storage.list("")
            await storage.close()

    asyncio.run(scene())
    assert model.inputs == [1, 3]


def test_snapshots_are_kept_in_plain_code_which_has_an_event_loop_for_each_call(store_url: str) -> None:
    snapshots = pytest.importorskip(
        "strands.session.snapshot_session_manager", reason="Strands has snapshots from 1.51 on"
    )
    model = loaded("strands_chat").ScriptedModel("The 10:40.", "Booked.")
    storage = StateStoreStorage(store_url)
    for _ in range(2):
        manager = snapshots.SnapshotSessionManager("trip", storage=storage)
        agent = Agent(model=model, session_manager=manager, agent_id="skipper", callback_handler=None)
        agent("Which ferry?")
    asyncio.run(storage.close())
    assert model.inputs == [1, 3]


def test_the_example_remembers(sqlite_url: str) -> None:
    lines = output_of("strands_chat", sqlite_url)
    assert lines[:3] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40.",
        "the model was given 5 messages",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines
