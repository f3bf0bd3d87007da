"""A session goes from one framework to another: text always, tool calls where both have them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

pytest.importorskip("agents")
pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from llama_index.core.llms import ChatMessage

from statestore import AgentResponse, Event, InvalidValue, Session, StateStore, UserMessage
from statestore.adapters.handoff import messages_for, stored_items_for, turns_in
from statestore.adapters.langchain import StateStoreChatMessageHistory
from statestore.adapters.llama_index import StateStoreChatStore
from statestore.adapters.openai_agents import StateStoreSession
from statestore.adapters.turns import Said, ToolCall, ToolResult, Turn

OPENAI: list[Any] = [
    {"role": "developer", "content": "Be short."},
    {"role": "user", "content": "Which ferry?"},
    {"id": "rs_1", "type": "reasoning", "summary": []},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
    {"type": "function_call", "call_id": "c1", "name": "timetable", "arguments": '{"before":"12:00"}'},
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "10:40"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "sunny"}]},
    {"role": "assistant", "content": "The 10:40."},
]
LANGCHAIN = [
    HumanMessage("Which ferry?"),
    AIMessage(
        "Let me look.",
        tool_calls=[
            {"id": "c1", "name": "timetable", "args": {"before": "12:00"}},
            {"id": "c2", "name": "weather", "args": {}},
        ],
    ),
    ToolMessage("10:40", tool_call_id="c1"),
    ToolMessage("sunny", tool_call_id="c2"),
    AIMessage("The 10:40."),
]
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "timetable", "arguments": '{"before":"12:00"}'}},
    {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
]
LLAMA = [
    ChatMessage(role="user", content="Which ferry?"),
    ChatMessage(role="assistant", content="Let me look.", additional_kwargs={"tool_calls": CALLS}),
    ChatMessage(role="tool", content="10:40", additional_kwargs={"tool_call_id": "c1"}),
    ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": "c2"}),
    ChatMessage(role="assistant", content="The 10:40."),
]
TURNS: list[Turn] = [
    Said("user", "Which ferry?"),
    Said("assistant", "Let me look."),
    ToolCall("c1", "timetable", '{"before":"12:00"}'),
    ToolCall("c2", "weather", "{}"),
    ToolResult("c1", "10:40"),
    ToolResult("c2", "sunny"),
    Said("assistant", "The 10:40."),
]
FRAMEWORKS = ("openai-agents", "langchain", "llama-index")


@pytest.fixture
def store(sqlite_url: str) -> Any:
    with StateStore.open(sqlite_url) as store:
        yield store


def written_by(framework: str, store: StateStore) -> Session:
    """The conversation as a framework's adapter stores it."""
    if framework == "openai-agents":
        asyncio.run(StateStoreSession("trip", store).add_items(OPENAI))
    elif framework == "langchain":
        StateStoreChatMessageHistory("trip", store).add_messages(LANGCHAIN)
    else:
        StateStoreChatStore(store).set_messages("trip", LLAMA)
    session = store.load_session("trip")
    assert session is not None
    return session


def said(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if not (isinstance(turn, Said) and turn.role == "system")]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_neutral_form_is_the_same_whoever_wrote_it(framework: str, store: StateStore) -> None:
    assert said(turns_in(written_by(framework, store))) == TURNS


@pytest.mark.parametrize(
    ("framework", "own"), [("openai-agents", OPENAI), ("langchain", LANGCHAIN), ("llama-index", LLAMA)]
)
def test_a_framework_gets_its_own_items_back_exactly(framework: str, own: list[Any], store: StateStore) -> None:
    assert messages_for(framework, written_by(framework, store)) == own


@pytest.mark.parametrize(("writer", "reader"), list(permutations(FRAMEWORKS, 2)))
def test_text_and_tool_calls_carry_over(writer: str, reader: str, store: StateStore) -> None:
    session = written_by(writer, store)
    items = stored_items_for(reader, [entry.record for entry in session.timeline])
    from statestore.adapters.handoff import dialect_of

    handed_on = [turn for item in items for turn in dialect_of(reader).read(item)]
    assert said(handed_on) == TURNS
    assert len(messages_for(reader, session)) == len(items)


def test_openai_agents_to_langchain_is_what_langchain_would_say(store: StateStore) -> None:
    assert messages_for("langchain", written_by("openai-agents", store))[1:] == LANGCHAIN


def test_langchain_to_llama_index_is_what_llama_index_would_say(store: StateStore) -> None:
    assert messages_for("llama-index", written_by("langchain", store)) == LLAMA


def test_a_framework_goes_on_where_another_one_stopped(store: StateStore) -> None:
    written_by("langchain", store)

    async def scene() -> list[Any]:
        session = StateStoreSession("trip", store)
        await session.add_items([{"role": "user", "content": "Book it."}])
        return await session.get_items()

    items = asyncio.run(scene())
    assert items[0] == {"role": "user", "content": "Which ferry?"}
    assert items[-1] == {"role": "user", "content": "Book it."}
    assert [item["type"] for item in items if "type" in item] == ["function_call"] * 2 + ["function_call_output"] * 2
    assert StateStoreChatMessageHistory("trip", store).messages == [*LANGCHAIN, HumanMessage("Book it.")]


def test_taking_back_part_of_what_another_framework_wrote_keeps_the_rest(store: StateStore) -> None:
    StateStoreChatMessageHistory("trip", store).add_messages(LANGCHAIN[:2])

    async def scene() -> tuple[Any, list[Any]]:
        session = StateStoreSession("trip", store)
        return await session.pop_item(), await session.get_items()

    popped, left = asyncio.run(scene())
    assert popped == {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"}
    assert [item.get("content") or item.get("name") for item in left] == ["Which ferry?", "Let me look.", "timetable"]


def test_records_that_no_framework_wrote_are_handed_on(store: StateStore) -> None:
    store.get_or_create_session("alice", "plain")
    store.append(
        "plain",
        UserMessage("Which ferry?"),
        Event("tool_call", {"id": "c1", "name": "timetable", "arguments": {"before": "12:00"}}),
        Event("tool_result", {"id": "c1", "output": ["10:40"]}),
        Event("tool_call", "something else"),
        Event("note", {"text": "?"}),
        UserMessage("", extra={"a-framework-of-tomorrow": {"x": 1}}),
        AgentResponse("The 10:40.", extra={"pydantic-ai": {"kind": "unknown here"}}),
    )
    session = store.load_session("plain")
    assert session is not None
    assert turns_in(session)[:3] == [
        Said("user", "Which ferry?"),
        ToolCall("c1", "timetable", '{"before":"12:00"}'),
        ToolResult("c1", '["10:40"]'),
    ]
    assert messages_for("langchain", session)[1].tool_calls[0]["args"] == {"before": "12:00"}


def test_a_part_of_a_timeline_can_be_handed_on(store: StateStore) -> None:
    written_by("langchain", store)
    assert messages_for("langchain", store.timeline("trip", limit=1)) == LANGCHAIN[-1:]


def test_an_unknown_framework_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidValue, match="langchain, llama-index, openai-agents"):
        messages_for("typo", [])


@pytest.mark.parametrize("conversation", [None, "trip", 5, ["trip"]], ids=repr)
def test_what_is_no_conversation_is_refused(conversation: Any) -> None:
    for take in (turns_in, lambda conversation: messages_for("langchain", conversation)):
        with pytest.raises(InvalidValue, match="a conversation is a loaded session"):
            take(conversation)


def test_arguments_that_are_no_json_object_are_kept_whole() -> None:
    assert ToolCall("1", "run", "ls -l").arguments_by_name == {"input": "ls -l"}
    assert ToolCall("1", "run", "").arguments_by_name == {}
