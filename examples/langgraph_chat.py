"""LangGraph on a statestore: a graph whose threads and long-term memory lie in a file that everybody can read.

    pip install 'statestore[langgraph]' langgraph
    python examples/langgraph_chat.py [URL]

No network and no key: the model says what is written below. Put a real one in its place, and nothing else changes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.base import BaseStore

from statestore import StateStore
from statestore.adapters.langgraph import StateStoreSaver, StateStoreStore

CALL = {"id": "call_1", "name": "timetable", "args": {"before": "12:00"}}
SCRIPT = [
    AIMessage("", tool_calls=[CALL]),
    AIMessage("The 10:40 arrives before noon."),
    AIMessage("Booked: the 10:40, a window seat."),
]


def build(saver: StateStoreSaver, memory: StateStoreStore, model: FakeMessagesListChatModel) -> Any:
    """A model, and a tool that it may call."""

    def agent(state: MessagesState, *, store: BaseStore) -> dict[str, Any]:
        if "window" in str(state["messages"][-1].content):
            store.put(("users", "alice"), "seat", {"text": "likes a window seat"})
        return {"messages": [model.invoke(state["messages"])]}

    def tools(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls  # type: ignore[union-attr]
        return {"messages": [ToolMessage("10:40, 11:15", tool_call_id=call["id"], name=call["name"]) for call in calls]}

    def is_calling(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else END

    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_node("tools", tools)
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", is_calling, ["tools", END])
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver, store=memory)


def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    model = FakeMessagesListChatModel(responses=SCRIPT)
    thread: Any = {"configurable": {"thread_id": "trip"}}
    with StateStore.open(url) as store:
        graph = build(StateStoreSaver(store, user_id="alice"), StateStoreStore(store), model)
        answer = graph.invoke({"messages": [HumanMessage("Which ferry arrives before noon?")]}, thread)
        print("agent:", answer["messages"][-1].content)

    with StateStore.open(url) as store:  # another day, another process
        saver, memory = StateStoreSaver(store, user_id="alice"), StateStoreStore(store)
        graph = build(saver, memory, model)
        answer = graph.invoke({"messages": [HumanMessage("Book it, with a window seat.")]}, thread)
        print("agent:", answer["messages"][-1].content)
        print("messages in the state:", len(answer["messages"]))
        print("checkpoints:", len(list(graph.get_state_history(thread))))
        print("remembered:", [item.value["text"] for item in memory.search(("users",), query="seat")])

        saver.prune(["trip"])  # only the newest checkpoint stays, and the conversation
        print("checkpoints after pruning:", len(list(graph.get_state_history(thread))))
        print("messages in the state:", len(graph.get_state(thread).values["messages"]))

        (summary,) = store.list_sessions(user_id="alice")
        print(f"{summary.id} - {summary.title} - {summary.message_count} messages")
        for hit in store.search_sessions("ferry"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with TemporaryDirectory() as directory:
            main(f"sqlite:{Path(directory) / 'state.db'}")
