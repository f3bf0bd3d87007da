"""What savers promise, tried on the framework's own first."""

from __future__ import annotations

import operator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint import base
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt
from typing_extensions import TypedDict

from adapters.langgraph.graphs import chat, echo, say, texts, thread
from statestore.adapters.langgraph import StateStoreSaver

Saver = BaseCheckpointSaver[Any]

VALUES = {
    "text": "Grüße, 東京 \U0001f600",
    "plain": {"a": [1, 2.5, None, True, {"b": []}], "$message": "not one", "": 0},
    "bytes": b"\x00\xff",
    "moment": datetime(2026, 11, 15, 12, 0, tzinfo=UTC),
    "set": {1, 2},
    "uuid": UUID(int=7),
    "decimal": Decimal("1.10"),
    "keys": {1: "one", (2): "two"},
    "large": 2**64 - 1,
    "infinite": float("inf"),
    "send": Send("node", {"x": 1}),
    "nothing": None,
    "empty": [],
    "mixed": [1, "two", AIMessage("three", id="3"), {"four": HumanMessage("4")}],
    "messages": [
        HumanMessage("Hello", id="1"),
        AIMessage(
            "Let me look.",
            id="2",
            tool_calls=[{"id": "c1", "name": "look", "args": {"where": "there"}}],
            usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
            response_metadata={"model": "m", "at": datetime(2026, 1, 1, tzinfo=UTC)},
        ),
        ToolMessage("found", tool_call_id="c1", id="3", name="look", artifact={"raw": [1]}),
        SystemMessage("Be brief.", id="4"),
        HumanMessage([{"type": "text", "text": "And"}, {"type": "image_url", "image_url": {"url": "u"}}], id="5"),
        AIMessage("", id="6", additional_kwargs={"reasoning": "…"}),
        HumanMessage("Hello", id="7", name="bob"),
    ],
}


def put(saver: Saver, values: dict[str, Any], parent: Any = None, **metadata: Any) -> Any:
    """Store a checkpoint with these values, all of them new."""
    versions = {channel: saver.get_next_version(None, None) for channel in values}
    checkpoint: Checkpoint = empty_checkpoint() | {  # type: ignore[assignment]
        "id": str(uuid6()),
        "channel_values": values,
        "channel_versions": versions,
    }
    config = parent or thread(checkpoint_ns="")
    return saver.put(config, checkpoint, {"source": "loop", "step": 1, "parents": {}, **metadata}, versions)


def test_values_of_every_kind_come_back_as_they_were(saver: Saver) -> None:
    config = put(saver, VALUES)
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES
    for channel, value in VALUES.items():
        assert type(found.checkpoint["channel_values"][channel]) is type(value), channel


def test_values_come_back_in_another_process(saver: Saver) -> None:
    config = put(saver, VALUES)
    if hasattr(saver, "_threads"):
        saver._threads.clear()  # nothing is remembered
    found = saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == VALUES


def test_a_regular_write_is_kept_and_a_special_one_replaced(saver: Saver) -> None:
    config = put(saver, {})
    saver.put_writes(config, [("a", 1), ("b", 2)], "task")
    saver.put_writes(config, [("a", 3), ("b", 4)], "task")
    saver.put_writes(config, [(ERROR, "first")], "task")
    saver.put_writes(config, [(ERROR, "second")], "task")
    saver.put_writes(config, [(INTERRUPT, "stop")], "task")
    found = saver.get_tuple(config)
    assert found is not None
    assert sorted(found.pending_writes or []) == [
        ("task", ERROR, "second"),
        ("task", INTERRUPT, "stop"),
        ("task", "a", 1),
        ("task", "b", 2),
    ]


def test_writes_come_in_the_order_of_their_paths(saver: Saver) -> None:
    if not isinstance(saver, StateStoreSaver) and not hasattr(base, "writes_sort_key"):
        pytest.skip("LangGraph's own savers have this order from langgraph-checkpoint 4.3 on")
    config = put(saver, {})
    for task, path in (("1", "~b"), ("2", "~a"), ("0", "~c")):
        saver.put_writes(config, [("ch", f"{task}.0"), ("ch", f"{task}.1")], task, path)
    found = saver.get_tuple(config)
    assert found is not None
    assert [value for _, _, value in found.pending_writes or []] == ["2.0", "2.1", "1.0", "1.1", "0.0", "0.1"]


def test_writes_may_come_before_their_checkpoint(saver: Saver) -> None:
    checkpoint = empty_checkpoint()
    config = thread(checkpoint_ns="", checkpoint_id=checkpoint["id"])
    for number in range(80):
        saver.put_writes(config, [("ch", number)], f"task-{number:02}")
    saver.put(thread(checkpoint_ns=""), checkpoint, {"source": "input", "step": -1, "parents": {}}, {})
    if hasattr(saver, "_threads"):
        saver._threads.clear()
    found = saver.get_tuple(thread())
    assert found is not None
    assert [value for _, _, value in found.pending_writes or []] == list(range(80))


def test_listing_filters_pages_and_orders(saver: Saver) -> None:
    configs = [
        put(saver, {"n": number}, step=number, kind="even" if number % 2 == 0 else "odd") for number in range(50)
    ]
    ids = [config["configurable"]["checkpoint_id"] for config in configs]
    assert [found.checkpoint["id"] for found in saver.list(thread())] == ids[::-1]
    even = list(saver.list(thread(), filter={"kind": "even"}, limit=3))
    assert [found.metadata["step"] for found in even] == [48, 46, 44]
    older = list(saver.list(thread(), before=configs[5], limit=2))
    assert [found.checkpoint["channel_values"]["n"] for found in older] == [4, 3]
    assert list(saver.list(thread("nobody"))) == []
    assert len(list(saver.list(None, filter={"step": 7}))) == 1


def test_a_conversation_goes_on_and_can_be_gone_back_to(saver: Saver) -> None:
    graph = chat(saver)
    say(graph, "one")
    say(graph, "two")
    assert texts(graph) == ["one", "You said: one", "two", "You said: two"]
    history = list(graph.get_state_history(thread()))
    earlier = next(state for state in history if len(state.values.get("messages", [])) == 2 and not state.next)
    answer = graph.invoke({"messages": [HumanMessage("other")]}, earlier.config)
    assert [message.content for message in answer["messages"]] == ["one", "You said: one", "other", "You said: other"]
    assert texts(graph) == ["one", "You said: one", "other", "You said: other"]
    assert len(list(graph.get_state_history(thread()))) == len(history) + 3


def test_a_message_that_a_node_changes_in_place_is_changed(saver: Saver) -> None:
    def censor(state: MessagesState) -> dict[str, Any]:
        state["messages"][-1].content = "***"
        return {"messages": [state["messages"][-1]]}

    graph = chat(saver, censor)
    assert say(graph, "a secret") == ["***"]
    assert say(graph, "another") == ["***", "***"]
    assert texts(graph) == ["***", "***"]


def test_a_message_of_an_earlier_turn_that_a_node_changes_is_changed(saver: Saver) -> None:
    def amend(state: MessagesState) -> dict[str, Any]:
        state["messages"][0].content = f"amended {len(state['messages'])}"
        return {"messages": [state["messages"][0]]}

    graph = chat(saver, amend)
    for number in range(3):
        say(graph, str(number))
    assert texts(graph) == ["amended 3", "1", "2"]
    if hasattr(saver, "_threads"):
        saver._threads.clear()
    assert texts(graph) == ["amended 3", "1", "2"]
    graph.update_state(
        thread(), {"messages": [HumanMessage("again", id=graph.get_state(thread()).values["messages"][1].id)]}
    )
    assert texts(graph) == ["amended 3", "again", "2"]


def test_messages_are_removed_and_replaced(saver: Saver) -> None:
    graph = chat(saver)
    for word in ("one", "two", "three"):
        say(graph, word)
    first, second, *_ = graph.get_state(thread()).values["messages"]
    graph.update_state(thread(), {"messages": [RemoveMessage(id=first.id), AIMessage("changed", id=second.id)]})
    assert texts(graph) == ["changed", "two", "You said: two", "three", "You said: three"]
    assert say(graph, "four")[-1] == "You said: four"
    assert texts(graph)[:2] == ["changed", "two"]


def test_what_a_caller_does_with_a_state_changes_nothing_stored(saver: Saver) -> None:
    graph = chat(saver)
    say(graph, "one")
    held = graph.get_state(thread()).values["messages"]
    held[0].content = "spoilt"
    held[0].additional_kwargs["more"] = 1
    again = graph.get_state(thread()).values["messages"]
    assert (again[0].content, again[0].additional_kwargs) == ("one", {})
    del held, again
    third = graph.get_state(thread()).values["messages"]
    third[0].content = "spoilt"
    del third
    assert texts(graph)[0] == "one"


def test_an_interrupted_graph_is_resumed(saver: Saver) -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"approved: {interrupt('May I?')}")]}

    graph = chat(saver, ask)
    graph.invoke({"messages": [HumanMessage("Do it.")]}, thread())
    assert graph.get_state(thread()).next == ("agent",)
    answer = graph.invoke(Command(resume="yes"), thread())
    assert answer["messages"][-1].content == "approved: yes"


def test_a_graph_that_failed_goes_on_where_it_failed(saver: Saver) -> None:
    state = TypedDict("state", {"done": Annotated[list[str], operator.add]})  # noqa: UP013
    fails = [True]
    builder = StateGraph(state)

    def good(_: Any) -> dict[str, Any]:
        return {"done": ["good"]}

    def bad(_: Any) -> dict[str, Any]:
        if fails.pop() if fails else False:
            raise RuntimeError("for once")
        return {"done": ["bad"]}

    builder.add_node("good", good)
    builder.add_node("bad", bad)
    for node in ("good", "bad"):
        builder.add_edge(START, node)
        builder.add_edge(node, END)
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="for once"):
        graph.invoke({"done": []}, thread())
    assert sorted(graph.invoke(None, thread())["done"]) == ["bad", "good"]


def test_a_subgraph_has_checkpoints_of_its_own(saver: Saver) -> None:
    inner = StateGraph(MessagesState)
    inner.add_node("inner", echo)
    inner.add_edge(START, "inner")
    inner.add_edge("inner", END)
    outer = StateGraph(MessagesState)
    outer.add_node("sub", inner.compile(checkpointer=True))
    outer.add_edge(START, "sub")
    outer.add_edge("sub", END)
    graph = outer.compile(checkpointer=saver)
    say(graph, "one")
    assert say(graph, "two")[-1] == "You said: two"
    namespaces = {found.config["configurable"]["checkpoint_ns"] for found in saver.list(thread())}
    assert namespaces == {"", "sub"}


def test_a_list_of_anything_grows(saver: Saver) -> None:
    state = TypedDict("state", {"seen": Annotated[list[Any], operator.add]})  # noqa: UP013
    builder = StateGraph(state)
    builder.add_node("node", lambda _: {"seen": [{"at": datetime(2026, 1, 1, tzinfo=UTC)}, 1, True]})
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    graph = builder.compile(checkpointer=saver)
    for number in range(30):
        graph.invoke({"seen": [number]}, thread())
    seen = graph.get_state(thread()).values["seen"]
    assert seen == [part for n in range(30) for part in (n, {"at": datetime(2026, 1, 1, tzinfo=UTC)}, 1, True)]
    assert [type(part) for part in seen[2:4]] == [int, bool]


def test_threads_with_any_id_are_kept_apart(saver: Saver) -> None:
    graph = chat(saver)
    ids = ["a/b", "a%2Fb", "..", "x" * 300, "x" * 301, "", str(uuid4()), " ", "a\nb"]
    for number, thread_id in enumerate(ids):
        say(graph, str(number), thread_id)
    assert [texts(graph, thread_id)[0] for thread_id in ids] == [str(number) for number in range(len(ids))]
    listed = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
    assert listed == set(ids)
    saver.delete_thread("a/b")
    assert texts(graph, "a/b") == []
    assert texts(graph, "a%2Fb") != []
