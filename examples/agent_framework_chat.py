"""The Agent Framework on a statestore: an agent that remembers, in a file that everybody can read.

    pip install 'statestore[agent-framework]'
    python examples/agent_framework_chat.py [URL]

No network and no key: the chat client says what is written below. Put a real one in its place, nothing else changes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from statestore import AsyncStateStore
from statestore.adapters.agent_framework import StateStoreHistoryProvider


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """A chat client that answers from a list: a text, or the name of a tool and its arguments as JSON."""

    def __init__(self, *script: str | tuple[str, str]) -> None:
        super().__init__()
        self.script = list(script)
        self.inputs: list[int] = []
        """How many messages the model was given, turn by turn."""

    def _inner_get_response(self, *, messages: Sequence[Message], stream: bool, **_: Any) -> Any:
        return self._respond(messages)

    async def _respond(self, messages: Sequence[Message]) -> ChatResponse[Any]:
        self.inputs.append(len(messages))
        line = self.script.pop(0)
        if isinstance(line, str):
            content = Content.from_text(line)
        else:
            content = Content.from_function_call(f"call_{len(self.inputs)}", line[0], arguments=line[1])
        return ChatResponse(messages=[Message("assistant", [content])])


@tool(approval_mode="never_require")
def timetable(before: str) -> str:
    """When the ferries arrive."""
    return f"before {before}: 10:40, 11:15"


async def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    client = ScriptedClient(
        ("timetable", '{"before": "12:00"}'), "The 10:40 arrives before noon.", "Booked: the 10:40."
    )

    def skipper(store: AsyncStateStore) -> Agent[Any]:
        history = StateStoreHistoryProvider(store, user_id="alice", metadata={"title": "A day on the island"})
        return Agent(client, "Be short.", tools=[timetable], context_providers=[history])

    async with AsyncStateStore.open(url) as store:
        agent = skipper(store)
        answer = await agent.run("Which ferry arrives before noon?", session=agent.create_session(session_id="trip"))
        print("agent:", answer.text)

    async with AsyncStateStore.open(url) as store:  # another day, another process
        agent = skipper(store)
        answer = await agent.run("Book it.", session=agent.create_session(session_id="trip"))
        print("agent:", answer.text)
        print("the model was given", client.inputs[-1], "messages")

        for entry in await store.timeline("trip"):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in await store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db")))
