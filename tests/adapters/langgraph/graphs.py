"""Graphs for tests: small, and without a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

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
