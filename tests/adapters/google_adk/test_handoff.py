"""ADK's conversations for other frameworks, and theirs for ADK; and the example, which runs one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.events.event import Event
from google.genai.types import FunctionCall, FunctionResponse, Part, Transcription

from adapters.google_adk.events import QUESTION, TRIP, changing, conversation, event, said
from adapters.reading import statestore
from adapters.running import output_of
from statestore import AsyncStateStore, Session
from statestore.adapters.dialects.google_adk import DIALECT, records_of
from statestore.adapters.google_adk import StateStoreSessionService
from statestore.adapters.handoff import messages_for, turns_in
from statestore.adapters.turns import Said, ToolCall, ToolResult
from statestore.records import kind_of

TURNS = [
    Said("user", QUESTION),
    Said("assistant", "Let me look."),
    ToolCall("call_1", "timetable", '{"before":"12:00"}'),
    ToolResult("call_1", "10:40, 11:15", "timetable"),
    Said("assistant", "The 10:40."),
    Said("user", "And this pier?\n[image/png]"),
]


def stored_conversation(url: str, events: list[Event]) -> Session:
    async def scene() -> Session:
        async with AsyncStateStore.open(url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            for one in events:
                await service.append_event(session, one)
            kept = await store.load_session("ferries:alice:trip")
            assert kept is not None
            return kept

    return asyncio.run(scene())


def test_a_conversation_is_told_in_turns(sqlite_url: str) -> None:
    session = stored_conversation(sqlite_url, [*conversation(), changing(a=1)])
    assert turns_in(session) == TURNS


def test_adk_gets_its_own_events_back_exactly(sqlite_url: str) -> None:
    events = conversation()
    assert messages_for("google-adk", stored_conversation(sqlite_url, events)) == events


def test_another_framework_gets_text_and_tools(sqlite_url: str) -> None:
    items = messages_for("openai-agents", stored_conversation(sqlite_url, conversation()))
    assert [item.get("type", item.get("role")) for item in items] == [
        "user", "assistant", "function_call", "function_call_output", "assistant", "user",
    ]  # fmt: skip


def test_adk_gets_what_another_framework_wrote() -> None:
    from statestore.adapters.dialects.openai_agents import DIALECT as OTHER

    session = Session("alice", "trip")
    for record in (record for item in OTHER.write(TURNS) for record in OTHER.records(item)):
        lists: dict[str, Any] = {"user": session.user_messages, "agent": session.agent_responses}
        lists.get(kind_of(record), session.events).append(record)
    events: list[Event] = messages_for("google-adk", session)
    assert [one.author for one in events] == ["user", "assistant", "assistant", "assistant", "user"]
    assert events[1].get_function_calls() == [FunctionCall(id="call_1", name="timetable", args={"before": "12:00"})]
    assert events[2].get_function_responses()[0].name == "timetable"
    assert [turn for one in events for turn in DIALECT.read(one.model_dump(mode="json", exclude_none=True))] == TURNS


def test_results_of_calls_made_together_are_one_event() -> None:
    turns = [
        ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}"), ToolResult("1", '{"a":1}'), ToolResult("2", "plain"),
    ]  # fmt: skip
    calls, results = DIALECT.write(turns)
    assert len(calls["content"]["parts"]) == 2
    assert [part["function_response"] for part in results["content"]["parts"]] == [
        {"id": "1", "name": "f", "response": {"a": 1}},
        {"id": "2", "name": "g", "response": {"result": "plain"}},
    ]


@pytest.mark.parametrize(
    ("one", "kinds"),
    [
        (said("hello"), ["user"]),
        (said("hello", "skipper"), ["agent"]),
        (event("skipper", [Part(text="hm", thought=True)]), ["reasoning"]),
        (event("skipper", [Part(function_call=FunctionCall(name="f"))]), ["tool_call"]),
        (event("skipper", [Part(text="x"), Part(function_call=FunctionCall(name="f"))]), ["agent", "tool_call"]),
        (event("user", [Part(function_response=FunctionResponse(name="f", response={}))], "user"), ["tool_result"]),
        (changing(a=1), ["state"]),
        (Event(author="skipper", error_code="500", error_message="broken"), ["error"]),
        (Event(author="skipper", output={"answer": 42}), ["output"]),
        (Event(author="skipper"), ["item"]),
        (Event(author="skipper", input_transcription=Transcription(text="spoken")), ["user"]),
        (Event(author="skipper", output_transcription=Transcription(text="answered")), ["agent"]),
    ],
)
def test_every_event_has_a_kind_that_tells_what_it_is(one: Event, kinds: list[str]) -> None:
    assert [kind_of(record) for record in records_of(one.model_dump(mode="json", exclude_none=True))] == kinds


def test_the_agent_of_the_example_remembers(sqlite_url: str) -> None:
    lines = output_of("google_adk", sqlite_url)
    assert lines[:4] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40.",
        "the model was given 5 contents",
        "state: {'asked': 1, 'user:last_asked': '12:00'}",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines
    assert "Which ferry arrives" in statestore(sqlite_url, "ls")
