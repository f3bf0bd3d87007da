"""What adapters cost on a server that is far away: listings wait a few times, not once for each session or document.

Adding a message costs the same however long the conversation is.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adapters.far import FarEngine
from statestore import AsyncStateStore, CorruptSession

MANY = 96
LONG = "x" * 250
"""Longer than a name may be."""
Scene = Callable[[AsyncStateStore, FarEngine], Awaitable[None]]
Add = Callable[[int], Awaitable[object]]


def played(scene: Scene) -> None:
    async def play() -> None:
        engine = FarEngine()
        async with AsyncStateStore.open(engine) as store:
            await scene(store, engine)

    asyncio.run(play())


async def round_trips(engine: FarEngine, work: Awaitable[Any]) -> int:
    """How often something waits for the server; what it asked for is in ``engine.asked``."""
    engine.leave()
    await work
    return engine.round_trips


# -- LangGraph


def test_memory_is_searched_and_written_in_few_round_trips() -> None:
    pytest.importorskip("langgraph.store")
    from langgraph.store.base import GetOp, PutOp

    from statestore.adapters.langgraph import StateStoreStore

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        memory = StateStoreStore(store)
        keys = [f"{number:02}" for number in range(MANY)]
        puts = [PutOp(("tea",), key, {"text": f"tea {key}"}) for key in keys]
        assert await round_trips(engine, memory.abatch(puts)) == 4
        assert await round_trips(engine, memory.abatch([GetOp(("tea",), key) for key in keys])) == 3
        assert await round_trips(engine, memory.asearch(("tea",), query="tea")) == 5
        assert await round_trips(engine, memory.asearch(("tea",), limit=10)) == 3
        assert engine.asked["get_document"] == 10
        assert await round_trips(engine, memory.asearch(("tea",), filter={"text": "tea 95"}, limit=1)) == 10
        assert await round_trips(engine, memory.alist_namespaces()) == 3
        assert engine.asked["get_document"] == 1

    played(scene)


def test_memory_in_many_namespaces_is_searched_in_few_round_trips() -> None:
    pytest.importorskip("langgraph.store")
    from langgraph.store.base import PutOp

    from statestore.adapters.langgraph import StateStoreStore

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        memory = StateStoreStore(store)
        await memory.abatch([PutOp(("users", f"{number:02}"), "tea", {}) for number in range(MANY)])
        assert await round_trips(engine, memory.asearch(("users",), query="tea")) == 7
        assert await round_trips(engine, memory.asearch(("users",), limit=5)) == 3
        assert engine.asked["get_document"] == 5
        assert await round_trips(engine, memory.alist_namespaces(limit=MANY)) == 7
        assert engine.asked["get_document"] == MANY

    played(scene)


def test_time_to_live_is_renewed_and_ended_in_one_commit() -> None:
    pytest.importorskip("langgraph.store")
    from langgraph.store.base import GetOp, PutOp, SearchOp

    from statestore.adapters.langgraph import StateStoreStore

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        memory = StateStoreStore(store)
        await memory.abatch([PutOp(("tea",), str(number), {}, ttl=10) for number in range(MANY)])
        reads = [GetOp(("tea",), "1"), GetOp(("tea",), "1"), SearchOp(("tea",), limit=10)]
        assert await round_trips(engine, memory.abatch(reads)) == 5
        assert (engine.asked["get_document"], engine.asked["commit"]) == (11, 1)
        await memory.abatch([PutOp(("tea",), str(number), {}, ttl=-1) for number in range(MANY)])
        assert await round_trips(engine, memory.asweep_ttl()) == 6
        assert engine.asked["commit"] == 1
        assert await memory.asearch(("tea",)) == []

    played(scene)


def test_the_checkpoints_of_all_threads_are_listed_in_few_round_trips() -> None:
    pytest.importorskip("langgraph.checkpoint")
    from langgraph.checkpoint.base import empty_checkpoint

    from statestore.adapters.langgraph import StateStoreSaver

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        saver = StateStoreSaver(store)
        for number in range(MANY):
            config: Any = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
            await saver.aput(config, empty_checkpoint(), {}, {})

        async def listed() -> None:
            assert len([found async for found in StateStoreSaver(store).alist(None)]) == MANY

        assert await round_trips(engine, listed()) == 8

    played(scene)


# -- Google ADK


def test_sessions_of_adk_are_listed_in_few_round_trips() -> None:
    pytest.importorskip("google.adk.sessions")
    from statestore.adapters.google_adk import StateStoreSessionService

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        service = StateStoreSessionService(store)
        for number in range(MANY):
            who = {"user_id": f"user {number}", "session_id": "s"}
            await service.create_session(app_name="ferries", **who, state={"n": number, "user:n": number})
        fresh = StateStoreSessionService(store)
        assert await round_trips(engine, fresh.list_sessions(app_name="ferries")) == 9
        assert await round_trips(engine, fresh.list_sessions(app_name="ferries")) == 6
        assert engine.asked["read_session"] == 0

    played(scene)


def test_the_states_that_a_session_of_adk_shares_are_read_together() -> None:
    pytest.importorskip("google.adk.sessions")
    from adapters.google_adk.events import TRIP, changing
    from statestore.adapters.google_adk import StateStoreSessionService

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        service = StateStoreSessionService(store)
        state = {"app:a": 1, "user:b": 2}
        assert await round_trips(engine, service.create_session(**TRIP, state=state)) == 4
        assert await round_trips(engine, service.get_session(**TRIP)) == 2
        session = await service.get_session(**TRIP)
        assert session is not None
        assert await round_trips(engine, service.append_event(session, changing(app__a=3, user__b=4))) == 3

    played(scene)


# -- Pydantic AI


def test_conversations_of_pydantic_ai_are_found_in_few_round_trips() -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai.conversation import Conversation

    from adapters.pydantic_ai.messages import exchange
    from statestore.adapters.pydantic_ai import StateStoreConversations

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        writer = StateStoreConversations(store)
        for number in range(MANY):
            await writer.save(Conversation(conversation_id=str(number), messages=exchange(number)))
        record = await writer.read_record("0")
        assert record is not None
        assert record.head_id is not None
        assert await round_trips(engine, StateStoreConversations(store).read_records()) == 4
        assert await round_trips(engine, StateStoreConversations(store).read_entry(record.head_id)) == 5
        last = await writer.read_record(str(MANY - 1))
        assert last is not None
        assert last.head_id is not None
        await round_trips(engine, StateStoreConversations(store).read_entry(last.head_id))
        assert engine.asked["read_session"] <= MANY // 2  # it lies in the newest: those behind it are not read

    played(scene)


def test_a_damaged_session_hides_no_entry_that_lies_elsewhere() -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai.conversation import Conversation

    from adapters.pydantic_ai.messages import exchange
    from statestore.adapters.pydantic_ai import StateStoreConversations

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        writer, heads = StateStoreConversations(store), []
        for name in ("damaged", "sound"):
            await writer.save(Conversation(conversation_id=name, messages=exchange(0)))
            record = await writer.read_record(name)
            assert record is not None
            heads.append(record.head_id)
        read: Any = engine.read_session

        async def refusing(session_id: str, **part: Any) -> Any:
            if session_id == "damaged":
                raise CorruptSession("it is damaged")
            return await read(session_id, **part)

        engine.read_session = refusing
        engine.leave()
        assert (await StateStoreConversations(store).read_entry(heads[1])).id == heads[1]
        with pytest.raises(CorruptSession):
            await StateStoreConversations(store).read_entry(heads[0])

    played(scene)


def test_a_conversation_with_many_forks_is_deleted_in_few_round_trips() -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai.conversation import Conversation

    from adapters.pydantic_ai.messages import exchange
    from statestore.adapters.pydantic_ai import StateStoreConversations

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        conversations = StateStoreConversations(store)
        await conversations.save(Conversation(conversation_id="trunk", messages=exchange(0)))
        for number in range(MANY):
            await conversations.fork("trunk", new_conversation_id=f"fork {number}")
        assert await round_trips(engine, conversations.delete("trunk")) == 6

    played(scene)


# -- The Claude Agent SDK


def entry(number: int) -> Any:
    return {"type": "user", "uuid": f"entry-{number}", "message": {"role": "user", "content": "Hello"}}


def test_transcripts_are_listed_and_deleted_in_few_round_trips() -> None:
    pytest.importorskip("claude_agent_sdk")
    from statestore.adapters.claude_agent_sdk import StateStoreSessions

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        sessions = StateStoreSessions(store)
        main: Any = {"project_key": LONG, "session_id": "0"}
        for number in range(MANY):
            await sessions.append({"project_key": LONG, "session_id": str(number)}, [entry(number)])
            await sessions.append({**main, "subpath": f"subagents/{number}"}, [entry(number)])
        assert await round_trips(engine, sessions.list_sessions(LONG)) == 4
        assert await round_trips(engine, sessions.list_session_summaries(LONG)) == 12
        assert engine.asked["commit"] == 2
        assert await round_trips(engine, StateStoreSessions(store).list_session_summaries(LONG)) == 7
        assert await round_trips(engine, sessions.list_subkeys(main)) == 4
        assert await round_trips(engine, sessions.delete(main)) == 6

    played(scene)


# -- The Agent Framework, LlamaIndex, Strands


def test_checkpoints_are_listed_in_few_round_trips() -> None:
    pytest.importorskip("agent_framework")
    from agent_framework import WorkflowCheckpoint

    with warnings.catch_warnings():  # what is experimental says so
        warnings.simplefilter("ignore")
        from statestore.adapters.agent_framework import StateStoreCheckpointStorage

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        storage = StateStoreCheckpointStorage(store)
        for number in range(MANY):
            await storage.save(
                WorkflowCheckpoint(workflow_name="w", graph_signature_hash="", checkpoint_id=f"{LONG}{number}")
            )
        assert await round_trips(engine, storage.list_checkpoints(workflow_name="w")) == 4
        assert await round_trips(engine, storage.list_checkpoint_ids(workflow_name="w")) == 4
        assert await round_trips(engine, storage.get_latest(workflow_name="w")) == 2

    played(scene)


def test_long_keys_of_chats_are_listed_in_few_round_trips() -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage

    from statestore.adapters.llama_index import StateStoreChatStore

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        chats = StateStoreChatStore(store)
        for number in range(MANY):
            await chats.async_add_message(f"{LONG}{number}", ChatMessage(content="Hello"))
        assert await round_trips(engine, chats.aget_keys()) == 4

    played(scene)


def test_keys_of_a_storage_are_listed_in_few_round_trips() -> None:
    pytest.importorskip("strands.storage")
    from statestore.adapters.strands import StateStoreStorage

    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        storage = StateStoreStorage(store)
        for number in range(MANY):
            await storage.write(f"sessions/{number}/snapshot.json", b"{}")
        assert await round_trips(engine, storage.list("sessions/")) == 4

    played(scene)


# -- Adding a message


def adding_to_openai_agents(store: AsyncStateStore) -> Add:
    pytest.importorskip("agents")
    from statestore.adapters.openai_agents import StateStoreSession

    session = StateStoreSession("trip", store)
    return lambda number: session.add_items([{"role": "user", "content": str(number)}])


def adding_to_langchain(store: AsyncStateStore) -> Add:
    pytest.importorskip("langchain_core")
    from langchain_core.messages import HumanMessage

    from statestore.adapters.langchain import StateStoreChatMessageHistory

    history = StateStoreChatMessageHistory("trip", store)
    return lambda number: history.aadd_messages([HumanMessage(str(number))])


def adding_to_llama_index(store: AsyncStateStore) -> Add:
    pytest.importorskip("llama_index.core")
    from llama_index.core.llms import ChatMessage

    from statestore.adapters.llama_index import StateStoreChatStore

    chats = StateStoreChatStore(store)
    return lambda number: chats.async_add_message("trip", ChatMessage(content=str(number)))


def adding_to_the_agent_framework(store: AsyncStateStore) -> Add:
    pytest.importorskip("agent_framework")
    from agent_framework import Message

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from statestore.adapters.agent_framework import StateStoreHistoryProvider

    history = StateStoreHistoryProvider(store)
    return lambda number: history.save_messages("trip", [Message("user", [str(number)])])


def adding_to_claude(store: AsyncStateStore) -> Add:
    pytest.importorskip("claude_agent_sdk")
    from statestore.adapters.claude_agent_sdk import StateStoreSessions

    sessions = StateStoreSessions(store)
    return lambda number: sessions.append({"project_key": "p", "session_id": "trip"}, [entry(number)])


def adding_to_adk(store: AsyncStateStore) -> Add:
    pytest.importorskip("google.adk.sessions")
    from adapters.google_adk.events import TRIP, said
    from statestore.adapters.google_adk import StateStoreSessionService

    service, known = StateStoreSessionService(store), []

    async def add(number: int) -> None:
        known[:] = known or [await service.create_session(**TRIP)]
        await service.append_event(known[0], said(str(number)))

    return add


def adding_to_pydantic_ai(store: AsyncStateStore) -> Add:
    pytest.importorskip("pydantic_ai.conversation_store")
    from pydantic_ai.conversation import Conversation

    from adapters.pydantic_ai.messages import asked
    from statestore.adapters.pydantic_ai import StateStoreConversations

    conversations, conversation = StateStoreConversations(store), Conversation(conversation_id="trip")

    async def add(number: int) -> None:
        conversation.messages.append(asked(str(number)))
        await conversations.save(conversation)

    return add


def adding_to_langgraph(store: AsyncStateStore) -> Add:
    pytest.importorskip("langgraph.checkpoint.sqlite")
    from langchain_core.messages import HumanMessage

    from adapters.langgraph.graphs import chat, thread
    from statestore.adapters.langgraph import StateStoreSaver

    graph = chat(StateStoreSaver(store))
    return lambda number: graph.ainvoke({"messages": [HumanMessage(str(number))]}, thread("trip"))


@pytest.mark.parametrize(
    "adding",
    [
        adding_to_openai_agents,
        adding_to_langchain,
        adding_to_llama_index,
        adding_to_the_agent_framework,
        adding_to_claude,
        adding_to_adk,
        adding_to_pydantic_ai,
        adding_to_langgraph,
    ],
)
def test_adding_a_message_costs_the_same_however_long_the_conversation_is(
    adding: Callable[[AsyncStateStore], Add],
) -> None:
    async def scene(store: AsyncStateStore, engine: FarEngine) -> None:
        add = adding(store)
        costs: list[Any] = []
        for number in range(MANY):
            engine.forget()
            await add(number)
            costs.append((engine.asked, engine.records_read))
        assert costs[10] == costs[MANY - 1]
        assert costs[10][1] <= 2

    played(scene)
