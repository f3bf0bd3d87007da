"""Google's ADK on a statestore: an agent with a tool and a state, in a file that everybody can read.

    pip install 'statestore[google-adk]'
    python examples/google_adk.py [URL]

No network and no key: the model says what is written below. Put a real one in its place, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.tools.tool_context import ToolContext
from google.genai.types import Content, FunctionCall, GenerateContentResponseUsageMetadata, Part

from statestore import AsyncStateStore
from statestore.adapters.google_adk import StateStoreSessionService


class ScriptedModel(BaseLlm):
    """A model that answers from a list: a text, or the call of a tool."""

    script: list[str | FunctionCall]
    given: list[int] = []  # how many contents the model was given, turn by turn

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.given.append(len(llm_request.contents))
        line = self.script.pop(0)
        part = Part(text=line) if isinstance(line, str) else Part(function_call=line)
        usage = GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=Content(role="model", parts=[part]), usage_metadata=usage)


def timetable(before: str, tool_context: ToolContext) -> dict[str, Any]:
    """When the ferries arrive."""
    tool_context.state["asked"] = tool_context.state.get("asked", 0) + 1
    tool_context.state["user:last_asked"] = before
    return {"arrivals": ["10:40", "11:15"]}


async def ask(runner: Runner, text: str) -> None:
    """Say something, and print what the agent answers."""
    message = Content(role="user", parts=[Part(text=text)])
    async for event in runner.run_async(user_id="alice", session_id="trip", new_message=message):
        if event.is_final_response() and event.content and event.content.parts:
            print("agent:", event.content.parts[0].text)


async def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    call = FunctionCall(name="timetable", args={"before": "12:00"})
    model = ScriptedModel(model="scripted", script=[call, "The 10:40 arrives before noon.", "Booked: the 10:40."])
    agent = LlmAgent(name="skipper", model=model, instruction="Be short.", tools=[timetable])

    async with AsyncStateStore.open(url) as store:
        service = StateStoreSessionService(store)
        await service.create_session(app_name="ferries", user_id="alice", session_id="trip")
        runner = Runner(app_name="ferries", agent=agent, session_service=service)
        await ask(runner, "Which ferry arrives before noon?")

    async with AsyncStateStore.open(url) as store:  # another day, another process
        service = StateStoreSessionService(store)
        runner = Runner(app_name="ferries", agent=agent, session_service=service)
        await ask(runner, "Book it.")
        print("the model was given", model.given[-1], "contents")

        session = await service.get_session(app_name="ferries", user_id="alice", session_id="trip")
        print("state:", session.state if session else None)
        for entry in await store.timeline("ferries:alice:trip"):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in await store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db")))
