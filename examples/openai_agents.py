"""The OpenAI Agents SDK on a statestore: an agent that remembers, in a file that everybody can read.

    pip install 'statestore[openai-agents]'
    python examples/openai_agents.py [URL]

No network and no key: the model says what is written below. Put a real one in its place, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from statestore import AsyncStateStore
from statestore.adapters.openai_agents import StateStoreSession


class ScriptedModel(Model):
    """A model that answers from a list: a text, or the name of a tool and its arguments."""

    def __init__(self, *script: str | tuple[str, str]) -> None:
        self._script = list(script)
        self.inputs: list[Any] = []
        """What the model was given, turn by turn."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        self.inputs.append(input)
        number, line = len(self.inputs), self._script.pop(0)
        if isinstance(line, str):
            text = ResponseOutputText(type="output_text", text=line, annotations=[])
            said: Any = ResponseOutputMessage(
                id=f"msg_{number}", type="message", role="assistant", status="completed", content=[text]
            )
        else:
            name, arguments = line
            said = ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{number}", name=name, arguments=arguments
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("this model does not stream")


@function_tool
def timetable(before: str) -> str:
    """When the ferries arrive."""
    return f"before {before}: 10:40, 11:15"


async def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    model = ScriptedModel(("timetable", '{"before": "12:00"}'), "The 10:40 arrives before noon.", "Booked: the 10:40.")
    agent = Agent(name="Skipper", instructions="Be short.", tools=[timetable], model=model)
    quiet = RunConfig(tracing_disabled=True)

    async with AsyncStateStore.open(url) as store:
        session = StateStoreSession("trip", store, user_id="alice", metadata={"title": "A day on the island"})
        first = await Runner.run(agent, "Which ferry arrives before noon?", session=session, run_config=quiet)
        print("agent:", first.final_output)

    async with AsyncStateStore.open(url) as store:  # another day, another process
        session = StateStoreSession("trip", store, user_id="alice")
        second = await Runner.run(agent, "Book it.", session=session, run_config=quiet)
        print("agent:", second.final_output)
        print("the model was given", len(model.inputs[-1]), "items")

        for entry in await store.timeline("trip"):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in await store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db")))
