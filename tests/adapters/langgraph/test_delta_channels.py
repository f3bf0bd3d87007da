"""Delta channels, which are rebuilt from what was written to ancestors: tried on the framework's own savers first."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph.channels.delta", reason="langgraph has delta channels from 1.2 on")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from adapters.langgraph.graphs import Reversing, before_read, put_in_namespace, thread
from statestore.adapters.langgraph import StateStoreSaver


def extend(state: list[Any], writes: list[list[Any]]) -> list[Any]:
    return [*state, *(item for write in writes for item in write)]


def graph_of(saver: BaseCheckpointSaver[Any], frequency: int) -> Any:
    state = TypedDict(  # noqa: UP013
        "state",
        {"messages": Annotated[list, DeltaChannel(extend, snapshot_frequency=frequency)]},  # type: ignore[misc]
    )
    builder = StateGraph(state)
    builder.add_node("agent", lambda s: {"messages": [AIMessage(f"answer {len(s['messages'])}")]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder.compile(checkpointer=saver)


def said(graph: Any, config: Any = None) -> list[str]:
    return [message.content for message in graph.get_state(config or thread()).values["messages"]]


def expected(turns: int) -> list[str]:
    return [text for n in range(turns) for text in (f"question {n}", f"answer {2 * n + 1}")]


@pytest.mark.parametrize("frequency", [1, 3, 1000])
def test_a_channel_is_rebuilt_from_what_was_written(saver: BaseCheckpointSaver[Any], frequency: int) -> None:
    graph = graph_of(saver, frequency)
    for number in range(7):
        graph.invoke({"messages": [HumanMessage(f"question {number}")]}, thread())
    assert said(graph) == expected(7)
    if hasattr(saver, "_threads"):
        saver._threads.clear()
    assert said(graph) == expected(7)
    newest = saver.get_tuple(thread())
    assert newest is not None
    histories = saver.get_delta_channel_history(config=newest.config, channels=["messages", "nobody's"])
    assert histories["nobody's"] == {"writes": []}
    reference = BaseCheckpointSaver.get_delta_channel_history(saver, config=newest.config, channels=["messages"])
    assert histories["messages"] == reference["messages"]
    assert saver.get_delta_channel_history(config=thread("none"), channels=["x"]) == {"x": {"writes": []}}


@pytest.mark.parametrize("frequency", [3, 1000])
def test_pruning_and_copying_keep_what_a_channel_is_built_on(our_saver: StateStoreSaver, frequency: int) -> None:
    graph = graph_of(our_saver, frequency)
    for number in range(7):
        graph.invoke({"messages": [HumanMessage(f"question {number}")]}, thread())
    our_saver.copy_thread("t", "copy")
    our_saver.prune(["t"])
    assert said(graph) == said(graph, thread("copy")) == expected(7)
    graph.invoke({"messages": [HumanMessage("question 7")]}, thread())
    assert said(graph) == expected(8)
    if frequency == 3:
        assert len(list(our_saver.list(thread()))) < len(list(our_saver.list(thread("copy"))))


def test_a_conversation_in_a_delta_channel_is_readable(our_saver: StateStoreSaver) -> None:
    graph = graph_of(our_saver, 1000)
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(f"question {number}")]}, thread())
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [response.content for response in session.agent_responses] == ["answer 1", "answer 3", "answer 5"]
    assert [message.content for message in session.user_messages] == ["question 0", "question 1", "question 2"]


def test_pruning_reads_what_a_channel_is_built_on_whatever_the_serializer(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url, serde=EncryptedSerializer(Reversing())) as saver:
        graph = graph_of(saver, 3)
        for number in range(7):
            graph.invoke({"messages": [HumanMessage(f"question {number}")]}, thread())
        before = len(list(saver.list(thread())))
        saver.prune(["t"])
        assert said(graph) == expected(7)
        assert len(list(saver.list(thread()))) < before


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_channel_is_rebuilt_though_its_thread_is_pruned_meanwhile(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    with StateStoreSaver(sqlite_url) as reader, StateStoreSaver(sqlite_url) as pruner:
        graph = graph_of(reader, 1000)
        for number in range(30):
            graph.invoke({"messages": [HumanMessage(f"question {number}")]}, thread())
        for value in ("old", "new"):
            put_in_namespace(reader, "another", value)
        reader._threads.clear()
        before_read(monkeypatch, moment, lambda: pruner.prune(["t"]))
        assert said(graph) == expected(30)
