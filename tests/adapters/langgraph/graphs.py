"""Graphs for tests, small and without a model; and what disturbs their savers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from statestore.adapters.langgraph.sessions import ThreadSession

Node = Callable[[MessagesState], dict[str, Any]]


def echo(state: MessagesState) -> dict[str, Any]:
    """Answer with what was said."""
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].content}")]}


def chat(saver: BaseCheckpointSaver[Any], node: Node = echo) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A conversation with one node."""
    builder = StateGraph(MessagesState)
    builder.add_node("agent", node)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder.compile(checkpointer=saver)


def thread(thread_id: str = "t", **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, **more}}


def say(graph: Any, text: str, thread_id: str = "t") -> list[str]:
    """Say something; the texts of the whole conversation."""
    answer = graph.invoke({"messages": [HumanMessage(text)]}, thread(thread_id))
    return [message.content for message in answer["messages"]]


def texts(graph: Any, thread_id: str = "t") -> list[str]:
    return [message.content for message in graph.get_state(thread(thread_id)).values.get("messages", [])]


def put_in_namespace(saver: BaseCheckpointSaver[Any], ns: str, value: str) -> Any:
    checkpoint: Any = empty_checkpoint() | {"channel_values": {"x": value}, "channel_versions": {"x": 1}}
    return saver.put(thread(checkpoint_ns=ns), checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"x": 1})


class Reversing(CipherProtocol):
    """Not a cipher, but it tells whether one was used."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


def before_read(monkeypatch: pytest.MonkeyPatch, number: int, happens: Callable[[], None]) -> None:
    """Have something happen, once, before a session is read for the so manieth time from now on."""
    read, countdown = ThreadSession.read, iter(range(number - 1, -1, -1))

    async def hooked(session: ThreadSession, store: Any, **which: Any) -> Any:
        if next(countdown, None) == 0:
            happens()
        return await read(session, store, **which)

    monkeypatch.setattr(ThreadSession, "read", hooked)


def records_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records each read of a session gives, from now on."""
    read, counts = ThreadSession.read, list[int]()

    async def counted(session: ThreadSession, store: Any, **which: Any) -> Any:
        stored = await read(session, store, **which)
        counts.append(0 if stored is None else len(stored.records.numbering.in_order()))
        return stored

    monkeypatch.setattr(ThreadSession, "read", counted)
    return counts
