"""The history provider of the Agent Framework: first the framework's own on files, then ours."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import Agent, Content, HistoryProvider, Message

from adapters.agent_framework.conftest import Scene
from adapters.agent_framework.writers import write_messages
from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.running import loaded, output_of
from statestore import AgentResponse, AsyncStateStore, InvalidValue, StateStore, StoreClosed, UserMessage, WrongUser
from statestore.adapters.agent_framework import StateStoreHistoryProvider
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.agent_framework import DIALECT
from statestore.adapters.handoff import dialect_of, messages_for, turns_in
from statestore.adapters.turns import Said, ToolCall, ToolResult

QUESTION = Message("user", ["Which ferry arrives before noon?"], message_id="m1")
CALL = Message(
    "assistant",
    [Content.from_text("Let me look."), Content.from_function_call("c1", "timetable", arguments='{"before":"12:00"}')],
)
RESULT = Message("tool", [Content.from_function_result("c1", result="10:40")])
ANSWER = Message("assistant", ["The 10:40."], author_name="Skipper", additional_properties={"mood": "fine"})
THOUGHT = Message("assistant", [Content.from_text_reasoning(text="A timetable helps.")])
PICTURE = Message("user", [Content.from_text("And this pier?"), Content.from_data(b"\x89PNG", "image/png")])
MESSAGES = [Message("system", ["Be short."]), QUESTION, THOUGHT, CALL, RESULT, ANSWER, PICTURE]


def plain(messages: Any) -> list[Any]:
    return [message.to_dict() for message in messages]


def said(messages: Any) -> list[str]:
    return [message.text for message in messages]


def test_it_is_a_history_provider(history: Scene) -> None:
    async def scene(provider: Any) -> None:
        assert isinstance(provider, HistoryProvider)
        assert (provider.load_messages, provider.store_inputs, provider.store_outputs) == (True, True, True)

    history.run(scene)


def test_messages_come_back_exactly_and_in_order(history: Scene) -> None:
    async def scene(provider: Any) -> None:
        assert await provider.get_messages("trip") == []
        await provider.save_messages("trip", MESSAGES[:3])
        await provider.save_messages("trip", MESSAGES[3:])
        assert plain(await provider.get_messages("trip")) == plain(MESSAGES)
        assert await provider.get_messages("other") == []

    history.run(scene)


def test_no_session_has_a_history_too(history: Scene) -> None:
    async def scene(provider: Any) -> None:
        await provider.save_messages(None, [QUESTION])
        assert said(await provider.get_messages(None)) == [QUESTION.text]

    history.run(scene)


def test_adding_nothing_is_no_error(history: Scene) -> None:
    async def scene(provider: Any) -> None:
        await provider.save_messages("trip", [])
        assert await provider.get_messages("trip") == []

    history.run(scene)


def texts(*words: str, role: str = "assistant") -> list[Message]:
    return [Message(role, [word]) for word in words]


@pytest.mark.parametrize(
    ("known", "incoming", "new"),
    [
        (texts("a", "b"), texts("a", "b", "c"), 1),
        (texts("a", "b", "c"), texts("b", "c", "d"), 1),
        (texts("a", "b", "c"), texts("c", "d"), 1),
        (texts("a", "b", "c"), texts("x", "a", "b", "c", "d"), 1),
        (texts("a", "b", "c"), texts("a", "b", "c"), 0),
        (texts("a", "b", "c"), texts("b", "d"), 2),
        (texts("a"), texts("a", "b"), 1),
        (texts("a", role="user"), texts("a", role="user"), 1),
        (texts("x", "a", role="user"), texts("a", "b", role="user"), 2),
        (texts("x", "a", role="user"), texts("x", "a", "b", role="user"), 1),
        ([QUESTION], [QUESTION, ANSWER], 1),
        ([QUESTION, ANSWER], [Message("user", ["changed"], message_id="m1"), ANSWER, RESULT], 1),
        (texts("a", "a", "a"), texts("a", "a", "a", "a"), 1),
        (texts("a", "a", "a", "a"), texts("a", "a"), 0),
        ([QUESTION, CALL, RESULT, ANSWER], [RESULT, ANSWER, QUESTION], 1),
    ],
)
def test_what_is_handed_over_again_is_kept_once(history: Scene, known: Any, incoming: Any, new: int) -> None:
    async def scene(provider: Any) -> None:
        from agent_framework._sessions import filter_new_messages

        if not isinstance(provider, StateStoreHistoryProvider) and len(filter_new_messages(known, incoming)) != new:
            pytest.skip("the framework has this rule from 1.20 on")
        await provider.save_messages("trip", known)
        await provider.save_messages("trip", incoming)
        expected = [*known, *incoming[len(incoming) - new :]]
        assert plain(await provider.get_messages("trip")) == plain(expected)

    history.run(scene)


@pytest.mark.parametrize("session_id", ["team/alice", "..", "x" * 100, "a%2Fb", "naïve 東京"])
def test_any_text_is_a_session_id(history: Scene, session_id: str) -> None:
    async def scene(provider: Any) -> None:
        await provider.save_messages(session_id, [QUESTION])
        await provider.save_messages(session_id + "/", [ANSWER])
        assert said(await provider.get_messages(session_id)) == [QUESTION.text]

    history.run(scene)


@pytest.mark.parametrize("bad", [object(), {1, 2}])
def test_what_is_not_json_is_refused_and_nothing_is_written(sqlite_url: str, bad: Any) -> None:
    async def scene() -> None:
        async with StateStoreHistoryProvider(sqlite_url) as provider:
            odd = Message("user", ["?"], additional_properties={"x": bad})
            odd.to_dict = lambda: {"type": "message", "role": "user", "contents": [], "x": bad}  # type: ignore[method-assign]
            with pytest.raises(InvalidValue):
                await provider.save_messages("trip", [QUESTION, odd])
            assert await provider.get_messages("trip") == []

    asyncio.run(scene())


# -- What ours promises beyond the contract.


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_messages, store_url)

    async def scene() -> list[str]:
        async with StateStoreHistoryProvider(store_url) as provider:
            return said(await provider.get_messages("contest"))

    told = asyncio.run(scene())
    assert len(told) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in told if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]


def test_a_person_can_read_it(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreHistoryProvider(store_url, user_id="alice") as provider:
            await provider.save_messages("trip", MESSAGES)

    asyncio.run(scene())
    seen = assert_readable(store_url, "trip", user=QUESTION.text, agent="The 10:40.", word="ferry", event="tool_call")
    assert "alice" in seen.ls
    assert "timetable" in seen.show


def test_only_the_newest_messages_are_loaded_if_so_asked(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            await StateStoreHistoryProvider(store).save_messages("trip", MESSAGES)
            assert plain(await StateStoreHistoryProvider(store, last=2).get_messages("trip")) == plain(MESSAGES[-2:])

    asyncio.run(scene())


def test_the_newest_messages_are_whole_though_others_wrote_them_in_parts(sqlite_url: str) -> None:
    items: list[Any] = [
        {"role": "user", "content": "Which ferry?"},
        {"role": "assistant", "content": "Let me look."},
        {"type": "function_call", "call_id": "c1", "name": "timetable", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "10:40"},
        {"type": "function_call_output", "call_id": "c2", "output": "sunny"},
    ]

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            openai, records = Conversation.of("openai-agents", "trip"), dialect_of("openai-agents").records
            for item in [*items, items[1], items[2]]:
                await openai.add(store, records(item))
                whole = plain(await StateStoreHistoryProvider(store).get_messages("trip"))
                for last in range(1, len(whole) + 1):
                    newest = await StateStoreHistoryProvider(store, last=last).get_messages("trip")
                    assert plain(newest) == whole[-last:]
            assert [part["type"] for part in whole[-1]["contents"]] == ["text", "function_call"]

    asyncio.run(scene())


def test_a_provider_with_a_name_has_sessions_of_its_own(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            audit = StateStoreHistoryProvider(store, source_id="audit")
            await audit.save_messages("trip", [QUESTION])
            assert await StateStoreHistoryProvider(store).get_messages("trip") == []
            assert await store.session_exists("trip:audit")

    asyncio.run(scene())


def test_excluded_messages_are_left_out_if_so_asked(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            hidden = Message("assistant", ["old"], additional_properties={"_excluded": True})
            await StateStoreHistoryProvider(store).save_messages("trip", [hidden, ANSWER])
            assert said(await StateStoreHistoryProvider(store, skip_excluded=True).get_messages("trip")) == [
                ANSWER.text
            ]
            assert len(await StateStoreHistoryProvider(store).get_messages("trip")) == 2

    asyncio.run(scene())


def test_a_users_session_is_not_anothers(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            alices = StateStoreHistoryProvider(store, user_id="alice")
            bobs = StateStoreHistoryProvider(store, user_id="bob")
            await alices.save_messages("trip", [QUESTION])
            assert await bobs.get_messages("trip") == []
            with pytest.raises(WrongUser):
                await bobs.save_messages("trip", [ANSWER])

    asyncio.run(scene())


def test_a_corrupt_message_names_itself_and_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with StateStoreHistoryProvider(sqlite_url) as provider:
            await provider.save_messages("trip", [QUESTION, ANSWER, RESULT])
            with sqlite3.connect(sqlite_url.removeprefix("sqlite:")) as database:
                database.execute("UPDATE records SET body = '{torn' WHERE place & 0xffffffff = 2")
            database.close()
            with caplog.at_level(logging.WARNING, "statestore"):
                assert plain(await provider.get_messages("trip")) == plain([QUESTION, RESULT])
            assert "session trip: record 2 cannot be read" in caplog.text

    asyncio.run(scene())


def test_a_message_of_a_newer_version_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    new = {"type": "message", "role": "assistant", "contents": [{"type": "tomorrow", "x": 1}]}

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            provider = StateStoreHistoryProvider(store)
            await provider.save_messages("trip", [QUESTION])
            await store.append("trip", AgentResponse("?", extra={"agent-framework": new}))
            with caplog.at_level(logging.WARNING, "statestore"):
                assert plain(await provider.get_messages("trip")) == plain([QUESTION])
            assert "cannot read" in caplog.text

    asyncio.run(scene())


def test_text_and_tool_calls_are_handed_over_both_ways(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        asyncio.run(StateStoreHistoryProvider(store).save_messages("trip", [QUESTION, THOUGHT, CALL, RESULT, ANSWER]))
        session = store.load_session("trip")
        assert session is not None
        turns = turns_in(session)
        assert turns == [
            Said("user", "Which ferry arrives before noon?"),
            Said("assistant", "Let me look."),
            ToolCall("c1", "timetable", '{"before":"12:00"}'),
            ToolResult("c1", "10:40"),
            Said("assistant", "The 10:40."),
        ]
        assert plain(messages_for("agent-framework", session)) == plain([QUESTION, THOUGHT, CALL, RESULT, ANSWER])
        assert messages_for("openai-agents", session)[-1] == {"role": "assistant", "content": "The 10:40."}
        written = DIALECT.load(DIALECT.write(turns))
        assert said(written) == [QUESTION.text, "Let me look.", "", "The 10:40."]
        assert [turn for item in DIALECT.write(turns) for turn in DIALECT.read(item)] == turns


def test_what_others_wrote_is_part_of_the_conversation(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        store.get_or_create_session("", "trip")
        store.append("trip", UserMessage("Which ferry?"))
        provider = StateStoreHistoryProvider(store)
        asyncio.run(provider.save_messages("trip", [ANSWER]))
        assert said(asyncio.run(provider.get_messages("trip"))) == ["Which ferry?", ANSWER.text]


def test_an_agent_goes_on_where_it_stopped(store_url: str) -> None:
    client = loaded("agent_framework_chat").ScriptedClient("The 10:40.", "Booked.")

    async def turn(prompt: str) -> None:
        async with StateStoreHistoryProvider(store_url) as provider:
            agent = Agent(client, context_providers=[provider])
            await agent.run(prompt, session=agent.create_session(session_id="trip"))

    for prompt in ("Which ferry arrives before noon?", "Book it."):
        asyncio.run(turn(prompt))
    assert client.inputs == [1, 3]


def test_a_store_from_a_url_is_closed(sqlite_url: str) -> None:
    async def scene() -> None:
        provider = StateStoreHistoryProvider(sqlite_url)
        await provider.save_messages("trip", [QUESTION])
        await provider.close()
        with pytest.raises(StoreClosed):
            await provider.get_messages("trip")

    asyncio.run(scene())


def test_the_example_remembers(sqlite_url: str) -> None:
    lines = output_of("agent_framework_chat", sqlite_url)
    assert lines[:3] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40.",
        "the model was given 5 messages",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines
