"""What the processes of a contest do, each with a saver or a store of memory of its own."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from adapters.langgraph.graphs import thread
from statestore.adapters.langgraph import StateStoreSaver, StateStoreStore


def put_checkpoints(url: str, name: str, count: int) -> None:
    """Put checkpoints with a message each, and a write to each, all into one thread; each goes on from the last."""
    with StateStoreSaver(url) as saver:
        config = thread("shared", checkpoint_ns="")
        messages: list[HumanMessage | AIMessage] = []
        for number in range(count):
            messages.append(HumanMessage(f"{name}:{number}", id=f"{name}-{number}"))
            checkpoint = empty_checkpoint() | {
                "id": str(uuid6()),
                "channel_values": {"messages": list(messages)},
                "channel_versions": {"messages": number + 1},
            }
            metadata = {"source": "loop", "step": number, "parents": {}, "writer": name}
            config = saver.put(config, checkpoint, metadata, {"messages": number + 1})  # type: ignore[arg-type]
            saver.put_writes(config, [("done", f"{name}:{number}")], f"task-{name}-{number}")


def remember(url: str, name: str, count: int) -> None:
    """Put items into one namespace."""
    with StateStoreStore(url) as store:
        for number in range(count):
            store.put(("shared",), f"{name}:{number}", {"by": name, "number": number})
