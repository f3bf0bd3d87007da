"""Strands Agents on a statestore: an agent that remembers, in a file that everybody can read.

    pip install 'statestore[strands]'
    python examples/strands_chat.py [URL]

No network and no key: the model says what is written below. Put a real one in its place, and nothing else changes.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from strands import Agent, tool
from strands.models.model import Model

from statestore import StateStore
from statestore.adapters.strands import StateStoreSessionManager


class ScriptedModel(Model):
    """A model that answers from a list: a text, or the name of a tool and its arguments as JSON."""

    def __init__(self, *script: str | tuple[str, str]) -> None:
        self._script = list(script)
        self.inputs: list[int] = []
        """How many messages the model was given, turn by turn."""

    def update_config(self, **_: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {"model_id": "scripted"}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("this model only talks")

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:  # type: ignore[override]
        self.inputs.append(len(messages))
        line = self._script.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(line, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": line}}}
        else:
            name, arguments = line
            called = {"name": name, "toolUseId": f"tool_{len(self.inputs)}"}
            yield {"contentBlockStart": {"start": {"toolUse": called}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": arguments}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(line, str) else "tool_use"}}


@tool
def timetable(before: str) -> str:
    """When the ferries arrive."""
    return f"before {before}: 10:40, 11:15"


def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    model = ScriptedModel(("timetable", '{"before": "12:00"}'), "The 10:40 arrives before noon.", "Booked: the 10:40.")

    def skipper(store: StateStore) -> Agent:
        manager = StateStoreSessionManager("trip", store, user_id="alice", metadata={"title": "A day on the island"})
        return Agent(model=model, tools=[timetable], session_manager=manager, agent_id="skipper", callback_handler=None)

    with StateStore.open(url) as store:
        print("agent:", str(skipper(store)("Which ferry arrives before noon?")).strip())

    with StateStore.open(url) as store:  # another day, another process
        print("agent:", str(skipper(store)("Book it.")).strip())
        print("the model was given", model.inputs[-1], "messages")

        for entry in store.timeline("trip"):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db"))
