"""Pydantic AI on a statestore: an agent that remembers, and a fork of what it remembers.

    pip install 'statestore[pydantic-ai]'
    python examples/pydantic_ai_agent.py [URL]

No network and no key: the model says what is written below. Put a real one in its place, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from statestore import AsyncStateStore
from statestore.adapters.pydantic_ai import StateStoreConversations


def scripted(*script: TextPart | ToolCallPart) -> tuple[FunctionModel, list[int]]:
    """A model that answers from a list, and how many messages it was given, turn by turn."""
    given: list[int] = []

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        given.append(len(messages))
        return ModelResponse(parts=[script[len(given) - 1]])

    return FunctionModel(answer), given


async def main(url: str) -> None:
    """Talk, come back later, go another way, and look at what was kept."""
    model, given = scripted(
        ToolCallPart("timetable", {"before": "12:00"}),
        TextPart("The 10:40 arrives before noon."),
        TextPart("Booked: the 10:40."),
        TextPart("By train it takes two hours."),
    )
    agent = Agent(model, instructions="Be short.")

    @agent.tool_plain
    def timetable(before: str) -> str:
        """When the ferries arrive."""
        return f"before {before}: 10:40, 11:15"

    async with AsyncStateStore.open(url) as store:
        conversations = StateStoreConversations(store)
        conversation = Conversation(conversation_id="trip")
        result = await agent.run("Which ferry arrives before noon?", conversation=conversation)
        await conversations.save(result, scope="alice")
        print("agent:", result.output)

    async with AsyncStateStore.open(url) as store:  # another day, another process
        conversations = StateStoreConversations(store)
        result = await agent.run("Book it.", conversation=await conversations.load("trip", scope="alice"))
        await conversations.save(result)
        print("agent:", result.output)
        print("the model was given", given[-1], "messages")

        fork = await conversations.fork("trip", at=4, new_conversation_id="by-train")
        result = await agent.run("And by train?", conversation=fork)
        print("in a fork:", result.output, "-", len(await conversations.save(result)), "messages stored")

        for record in await conversations.list_conversations(scope="alice"):
            print(record.conversation_id, "- forked from", record.forked_from)
        for entry in await store.timeline("trip"):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in await store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db")))
