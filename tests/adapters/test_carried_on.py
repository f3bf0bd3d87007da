"""A conversation that one framework began, another carries on, and a third ends: each model is given all of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.reading import assert_readable
from adapters.running import loaded
from statestore import AsyncStateStore, Session
from statestore.adapters.handoff import messages_for

pytest.importorskip("agents")
pytest.importorskip("langgraph")
pytest.importorskip("pydantic_ai")

QUESTION, ANSWER = "Which ferry arrives before noon?", "The 10:40 arrives before noon."
ORDER, RECEIPT = "Book it.", "Booked: the 10:40."
THANKS, FAREWELL = "Thank you.", "Have a good trip."


async def _session(store: AsyncStateStore, session_id: str) -> Session:
    session = await store.load_session(session_id)
    assert session is not None
    return session


async def _begin_in_openai_agents(store: AsyncStateStore) -> None:
    from agents import Agent, RunConfig, Runner

    from statestore.adapters.openai_agents import StateStoreSession

    example = loaded("openai_agents")
    model = example.ScriptedModel(("timetable", '{"before": "12:00"}'), ANSWER)
    agent = Agent(name="Skipper", tools=[example.timetable], model=model)
    memory = StateStoreSession("begun", store, user_id="alice")
    await Runner.run(agent, QUESTION, session=memory, run_config=RunConfig(tracing_disabled=True))


async def _carry_on_in_pydantic_ai(store: AsyncStateStore) -> list[Any]:
    from pydantic_ai import Agent
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from statestore.adapters.pydantic_ai import StateStoreConversations

    given: list[Any] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        given.extend(part for message in messages for part in message.parts)
        return ModelResponse(parts=[TextPart(RECEIPT)])

    history = messages_for("pydantic-ai", await _session(store, "begun"))
    conversation = Conversation(conversation_id="carried-on", messages=history)
    result = await Agent(FunctionModel(answer)).run(ORDER, conversation=conversation)
    await StateStoreConversations(store).save(result, scope="alice")
    return given


async def _end_in_langgraph(store: AsyncStateStore) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from statestore.adapters.langgraph import StateStoreSaver

    given: list[Any] = []

    async def answer(state: MessagesState) -> dict[str, Any]:
        given.extend(state["messages"])
        return {"messages": [AIMessage(FAREWELL)]}

    builder = StateGraph(MessagesState)
    builder.add_node("agent", answer)
    builder.add_edge(START, "agent")
    graph = builder.compile(checkpointer=StateStoreSaver(store, user_id="alice"))
    history = messages_for("langchain", await _session(store, "carried-on"))
    thread: Any = {"configurable": {"thread_id": "ended"}}
    await graph.ainvoke({"messages": [*history, HumanMessage(THANKS)]}, thread)
    return given


@pytest.mark.filterwarnings("ignore")  # the frameworks' own
def test_a_conversation_goes_from_one_framework_to_the_next(sqlite_url: str) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            await _begin_in_openai_agents(store)
            parts = await _carry_on_in_pydantic_ai(store)
            assert [getattr(part, "content", None) for part in parts if part.part_kind in ("user-prompt", "text")] == [
                QUESTION,
                ANSWER,
                ORDER,
            ]
            calls = [part for part in parts if part.part_kind == "tool-call"]
            returns = [part for part in parts if part.part_kind == "tool-return"]
            assert [(call.tool_name, call.args_as_dict()) for call in calls] == [("timetable", {"before": "12:00"})]
            assert [answer.tool_call_id for answer in returns] == [calls[0].tool_call_id]

            messages = await _end_in_langgraph(store)
            said = [message.content for message in messages if message.content and message.type in ("human", "ai")]
            assert said == [QUESTION, ANSWER, ORDER, RECEIPT, THANKS]
            assert [call["name"] for message in messages for call in getattr(message, "tool_calls", [])] == [
                "timetable"
            ]
            assert [message.type for message in messages].count("tool") == 1

            items = messages_for("openai-agents", await _session(store, "ended"))
            assert [item["type"] for item in items if item.get("type", "").startswith("function_call")] == [
                "function_call",
                "function_call_output",
            ]

    asyncio.run(run())
    for session_id in ("begun", "carried-on", "ended"):
        assert_readable(sqlite_url, session_id, user=QUESTION, agent=ANSWER, word="ferry", event="tool_call")
