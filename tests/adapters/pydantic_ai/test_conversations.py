"""What our conversation store promises beyond Pydantic AI's contract: it lasts, it is shared, people can read it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from adapters.contests import WRITES, two_processes
from adapters.pydantic_ai.conftest import Opened
from adapters.pydantic_ai.messages import QUESTION, answered, asked, dialogue, exchange, texts
from adapters.pydantic_ai.writers import write_messages
from adapters.reading import assert_readable, statestore
from adapters.running import output_of
from statestore import AsyncStateStore, Session, StateStore, StoreClosed
from statestore.adapters.dialects.pydantic_ai import DIALECT, records_of
from statestore.adapters.handoff import messages_for, turns_in
from statestore.adapters.pydantic_ai import StateStoreConversations
from statestore.adapters.turns import Said, ToolCall, ToolResult
from statestore.records import kind_of


async def saved(store: Any, conversation_id: str, messages: list[ModelMessage], **options: Any) -> Conversation:
    conversation = Conversation(conversation_id=conversation_id, messages=messages)
    await store.save(conversation, **options)
    return conversation


def test_it_is_all_there_when_it_is_opened_again(opened_durable: Opened) -> None:
    async def scene() -> None:
        async with opened_durable() as store:
            first = await saved(store, "trip", dialogue(), scope="alice")
            fork = await store.fork("trip", at=2, new_conversation_id="other")
            fork.messages += exchange(1)
            await store.save(fork)
            tips = [(await store.read_record(name)).head_id for name in ("trip", "other")]
            branched = await store.branch("trip", at=1, expected_revision=first.revision)
        async with opened_durable() as store:
            assert (await store.load("trip")) == branched
            assert (await store.load("other")) == fork
        for tip, messages in zip(tips, (first.messages, fork.messages), strict=True):
            async with opened_durable() as store:  # one that has never seen the entry
                assert (await store.read_entry(tip)).message == messages[-1]
            async with opened_durable() as store:
                assert [entry.message for entry in await store.read_history(tip)] == messages

    asyncio.run(scene())


def test_two_processes_keep_every_message(store_url: str) -> None:
    two_processes(write_messages, store_url)

    async def scene() -> None:
        async with StateStoreConversations(store_url) as store:
            conversation = await store.load("contest")
            assert conversation is not None
            assert conversation.usage.requests == 2 * WRITES
            said = texts(conversation)
            assert len(said) == len(set(said)) == 2 * WRITES
            for name in ("a", "b"):
                assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]

    asyncio.run(scene())


def test_of_savers_at_once_one_wins(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as store:
            await saved(store, "trip", exchange(0))
            for number in range(1, 4):
                copies = [await store.load("trip") for _ in range(4)]
                for copy in copies:
                    copy.messages += exchange(number)
                outcomes = await asyncio.gather(*map(store.save, copies), return_exceptions=True)
                assert sum(isinstance(outcome, ConversationConflict) for outcome in outcomes) == 3
            assert len((await store.load("trip")).messages) == 8

    asyncio.run(scene())


def test_a_fork_and_a_delete_at_once_leave_nothing_broken(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as store:
            for number in range(5):
                await saved(store, "trip", exchange(number))
                outcomes = await asyncio.gather(
                    store.fork("trip", new_conversation_id=f"fork{number}"),
                    store.delete("trip"),
                    return_exceptions=True,
                )
                fork = await store.load(f"fork{number}")
                assert (fork is None) == isinstance(outcomes[0], Exception)
                assert fork is None or texts(fork) == [f"question {number}", f"answer {number}"]
                assert await store.load("trip") is None

    asyncio.run(scene())


def test_a_record_that_points_to_what_somebody_else_deleted_is_refused(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            mine, theirs = StateStoreConversations(store), StateStoreConversations(store)
            await saved(mine, "trip", exchange(0))
            record = await mine.read_record("trip")
            assert record is not None
            await theirs.delete("trip")
            with pytest.raises(ConversationConflict):
                await mine.write_record(record, expected_revision=None)
            assert await mine.read_record("trip") is None

    asyncio.run(scene())


def test_an_id_under_which_a_fork_needs_somebodys_messages_is_not_given_to_somebody_else(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            conversations = StateStoreConversations(store)
            await saved(conversations, "trip", exchange(0), scope="alice")
            await conversations.fork("trip", new_conversation_id="other")
            await conversations.delete("trip")
            with pytest.raises(ConversationConflict):
                await saved(conversations, "trip", exchange(1), scope="bob")
            await conversations.delete("other")
            await saved(conversations, "trip", exchange(1), scope="bob")
            await store.erase_user("alice")
            assert texts(await conversations.load("trip", scope="bob")) == ["question 1", "answer 1"]

    asyncio.run(scene())


def test_nothing_is_left_of_conversations_that_were_forked_from_each_other(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            conversations = StateStoreConversations(store)
            await saved(conversations, "trip", exchange(0))
            other = await conversations.fork("trip", new_conversation_id="other")
            other.messages += exchange(1)
            await conversations.save(other)
            await conversations.delete("trip")
            again = await conversations.fork("other", new_conversation_id="trip")
            await conversations.delete("other")
            assert texts(await conversations.load("trip")) == texts(again)
            await conversations.delete("trip")
            assert await store.list_sessions() == []

    asyncio.run(scene())


def test_a_person_can_read_it(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreConversations(store_url) as store:
            await saved(store, "trip", dialogue(), scope="alice")

    asyncio.run(scene())
    seen = assert_readable(store_url, "trip", user=QUESTION, agent="The 10:40.", word="noon", event="tool_call")
    assert "alice" in seen.ls
    assert "tool_result" in seen.show
    assert "[application/pdf]" in seen.markdown


def test_a_fork_names_its_parent_and_a_branch_is_told(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            conversations = StateStoreConversations(store)
            first = await saved(conversations, "trip", [*exchange(0), *exchange(1)])
            await conversations.fork("trip", new_conversation_id="other")
            fork = await store.load_session("other")
            assert fork is not None
            assert (fork.parent_session_id, fork.timeline) == ("trip", [])
            branched = await conversations.branch("trip", at=2, expected_revision=first.revision)
            branched.messages += exchange(2)
            await conversations.save(branched)
            kinds = [entry.kind for entry in await store.timeline("trip")]
            assert kinds == ["user", "agent", "user", "agent", "branch", "user", "agent"]

    asyncio.run(scene())


def test_a_session_of_another_program_is_not_taken(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            conversations = StateStoreConversations(store)
            other = Session("alice", "trip")
            other.add_user_message("mine")
            await store.save_session(other)
            assert await conversations.load("trip") is None
            assert await conversations.list_conversations() == []
            with pytest.raises(ConversationConflict):
                await saved(conversations, "trip", exchange(0))
            assert len(await store.timeline("trip")) == 1

    asyncio.run(scene())


def test_what_is_not_json_is_refused_before_anything_is_written(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as store:
            for bad in (object(), 2**70, "\ud800"):
                message = ModelResponse(parts=[ToolCallPart("f", {"bad": bad}, tool_call_id="c")])
                with pytest.raises(ValueError):  # noqa: PT011 - pydantic's, or ours
                    await saved(store, "trip", [asked("hello"), message])
                assert await store.load("trip") is None

    asyncio.run(scene())


def test_a_message_that_cannot_be_read_names_itself_and_hides_no_other(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with StateStoreConversations(sqlite_url) as store:
            entries = await store.save(Conversation(conversation_id="trip", messages=[asked("one"), asked("two")]))
        _damage(sqlite_url.removeprefix("sqlite:"))
        async with StateStoreConversations(sqlite_url) as store:
            with caplog.at_level(logging.WARNING, "statestore"):
                conversation = await store.load("trip")
            assert texts(conversation) == ["one"]
            assert any(entries[1].id in record.getMessage() for record in caplog.records)
            assert conversation is not None
            conversation.messages.append(answered("three"))
            await store.save(conversation)
            assert texts(await store.load("trip")) == ["one", "three"]

    asyncio.run(scene())


def _damage(path: str) -> None:
    """Change the kind of the second message's part to something that is none."""
    connection = sqlite3.connect(path)
    with connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]:
                for (body,) in connection.execute(f"SELECT {column} FROM {table}").fetchall():
                    data = body.encode() if isinstance(body, str) else body
                    if isinstance(data, bytes) and b'{"content":"two"' in data:
                        start = data.rindex(b'{"content":"two"')
                        changed: Any = data[:start] + data[start:].replace(b'"user-prompt"', b'"user-pr0mpt"')
                        changed = changed.decode() if isinstance(body, str) else changed
                        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (changed, body))
    connection.close()


def test_who_opened_the_store_closes_it(sqlite_url: str) -> None:
    async def scene() -> None:
        with StateStore.open(sqlite_url) as plain:
            async with StateStoreConversations(plain) as store:
                await saved(store, "trip", dialogue())
                assert len(texts(await store.load("trip"))) == len(dialogue())
            assert plain.session_exists("trip")
        own = StateStoreConversations(sqlite_url)
        assert await own.load("trip") is not None
        await own.close()
        with pytest.raises(StoreClosed):
            await own.load("trip")

    asyncio.run(scene())


def test_an_agent_goes_on_with_its_conversation(opened_ours: Opened) -> None:
    given: list[int] = []

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        given.append(len(messages))
        return ModelResponse(parts=[TextPart(f"answer {len(given)}")])

    async def scene() -> None:
        agent = Agent(FunctionModel(model))
        async with opened_ours() as store:
            for turn in range(3):
                conversation = await store.load("trip") or Conversation(conversation_id="trip")
                result = await agent.run(f"question {turn}", conversation=conversation)
                assert len(await store.save(result)) == 2
            assert given == [1, 3, 5]
            kept = await store.load("trip")
            assert (kept.usage.requests, len(kept.messages)) == (3, 6)

    asyncio.run(scene())


# -- Handoff.

TURNS = [
    Said("system", "Be short."),
    Said("user", QUESTION),
    Said("assistant", "Let me look."),
    ToolCall("call_1", "timetable", '{"before":"12:00"}'),
    ToolResult("call_1", "10:40, 11:15", "timetable"),
    ToolCall("call_2", "book", '{"ferry": "10:40"}'),
    ToolResult("call_2", "Which seat?", "book"),
    Said("assistant", "The 10:40."),
    Said("user", "And this pier?\n[application/pdf]"),
]


def test_a_conversation_is_told_in_turns_and_comes_back_exactly(sqlite_url: str) -> None:
    async def scene() -> Session:
        async with AsyncStateStore.open(sqlite_url) as store:
            await saved(StateStoreConversations(store), "trip", messages)
            session = await store.load_session("trip")
            assert session is not None
            return session

    messages = dialogue()
    session = asyncio.run(scene())
    assert turns_in(session) == TURNS
    assert messages_for("pydantic-ai", session) == messages


def test_what_another_framework_wrote_becomes_messages() -> None:
    from statestore.adapters.dialects.openai_agents import DIALECT as OTHER

    session = Session("alice", "trip")
    for record in (record for item in OTHER.write(TURNS) for record in OTHER.records(item)):
        lists: dict[str, Any] = {"user": session.user_messages, "agent": session.agent_responses}
        lists.get(kind_of(record), session.events).append(record)
    messages = messages_for("pydantic-ai", session)
    assert [message.kind for message in messages] == ["request", "response"] * 3 + ["request"]
    assert isinstance(messages[0], ModelRequest)
    assert isinstance(messages[0].parts[1], UserPromptPart)
    assert messages[1].parts[1] == ToolCallPart("timetable", '{"before":"12:00"}', tool_call_id="call_1")


@pytest.mark.parametrize(
    ("item", "kinds"),
    [
        ({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "x"}]}, ["user"]),
        ({"kind": "response", "parts": [{"part_kind": "text", "content": "x"}]}, ["agent"]),
        ({"kind": "response", "parts": [{"part_kind": "thinking", "content": "x"}]}, ["reasoning"]),
        ({"kind": "request", "parts": [{"part_kind": "system-prompt", "content": "x"}]}, ["system"]),
        ({"kind": "response", "parts": [{"part_kind": "a-part-of-tomorrow", "x": 1}]}, ["a-part-of-tomorrow"]),
        ({"kind": "a-message-of-tomorrow"}, ["a-message-of-tomorrow"]),
    ],
)
def test_every_message_has_a_kind_that_tells_what_it_is(item: Any, kinds: list[str]) -> None:
    assert [kind_of(record) for record in records_of(item)] == kinds
    assert DIALECT.read({"kind": "a-message-of-tomorrow"}) == []


def test_the_example_goes_on_and_forks(sqlite_url: str) -> None:
    lines = output_of("pydantic_ai_agent", sqlite_url)
    assert lines[:3] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40.",
        "the model was given 5 messages",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines
    assert "trip" in statestore(sqlite_url, "ls", "--user", "alice")
