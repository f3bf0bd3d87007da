"""Messages that ``==`` does not tell apart, or cannot compare: every saver gives them back, and stores each once."""

from __future__ import annotations

import math
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from adapters.langgraph.graphs import chat, say, thread
from statestore.adapters.langgraph import StateStoreSaver
from statestore.adapters.langgraph.rolls import Roll
from statestore.adapters.langgraph.sameness import are_equal, are_same

numpy = pytest.importorskip("numpy")
Saver = BaseCheckpointSaver[Any]


class WithMore(MessagesState):
    more: Any


def forget(saver: Saver) -> None:
    """Have a saver remember nothing, like one in another process."""
    if isinstance(saver, StateStoreSaver):
        saver._threads.clear()


def messages(saver: Saver) -> list[Any]:
    return chat(saver).get_state(thread()).values["messages"]


def responses(saver: StateStoreSaver) -> list[str]:
    session = saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    return [response.content for response in session.agent_responses]


def results(saver: StateStoreSaver) -> int:
    session = saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    return [event.kind for event in session.events].count("tool_result")


@pytest.mark.parametrize("ids", [("t1", "t3", "t5"), (None, None, None)])
def test_a_message_with_an_array_comes_back(saver: Saver, ids: tuple[str | None, ...]) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        given = ids[len(state["messages"]) // 2]
        return {"messages": [ToolMessage("r", tool_call_id="c", id=given, artifact=numpy.array([1, 2, 3]))]}

    for _ in range(3):
        say(chat(saver, node), "go on")
    for _ in range(2):
        assert [m.artifact.tolist() for m in messages(saver)[1::2]] == [[1, 2, 3]] * 3
        forget(saver)
    if isinstance(saver, StateStoreSaver):
        assert results(saver) == 3


def test_an_array_that_a_node_changes_is_changed(saver: Saver) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        count = len(state["messages"])
        return {"messages": [ToolMessage("r", tool_call_id="c", id="t", artifact=numpy.array([1, count]))]}

    for count in (1, 3):
        say(chat(saver, node), "go on")
        for _ in range(2):
            assert messages(saver)[1].artifact.tolist() == [1, count]
            forget(saver)


@pytest.mark.parametrize(("old", "new"), [(1, True), (1, 1.0), ([0], [False]), ({"a": {"b": 2.0}}, {"a": {"b": 2}})])
def test_a_value_that_changes_its_type_alone_is_changed(saver: Saver, old: Any, new: Any) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage("hi", id="h", additional_kwargs={"n": new})]}

    chat(saver, node).invoke({"messages": [HumanMessage("hi", id="h", additional_kwargs={"n": old})]}, thread())
    for _ in range(2):
        assert repr(messages(saver)[0].additional_kwargs["n"]) == repr(new)
        forget(saver)


def test_a_message_with_what_is_no_number_is_stored_once(our_saver: StateStoreSaver) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("ok", additional_kwargs={"score": math.nan})]}

    for _ in range(4):
        say(chat(our_saver, node), "hi")
        forget(our_saver)
    assert all(math.isnan(message.additional_kwargs["score"]) for message in messages(our_saver)[1::2])
    assert responses(our_saver) == ["ok"] * 4


@pytest.mark.parametrize("id", ["t", None])
def test_what_the_serializer_does_not_keep_is_gone_at_once_and_stored_once(saver: Saver, id: str | None) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        if len(state["messages"]) > 1:
            return {}
        return {"messages": [ToolMessage("r\ud800", tool_call_id="c", id=id, artifact={"box": (1, 2)})]}

    for _ in range(3):
        say(chat(saver, node), "hi")
        found = messages(saver)[1]
        assert (found.content, found.artifact) == ("r?", {"box": [1, 2]})
        found.artifact["box"] = (1, 2)  # which the serializer would take for the same
        assert messages(saver)[1].artifact == {"box": [1, 2]}
    forget(saver)
    assert messages(saver)[1].artifact == {"box": [1, 2]}
    if isinstance(saver, StateStoreSaver):
        assert results(saver) == 1


@pytest.mark.parametrize("more", [{"$said": [1]}, {"$said": [99], "b": 2}, {"$said": "x"}, {"a": {"$said": [1]}}])
def test_a_value_that_looks_like_one_of_our_references_is_none(saver: Saver, more: Any) -> None:
    builder = StateGraph(WithMore)
    builder.add_node("agent", lambda state: {"more": more})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile(checkpointer=saver)
    for _ in range(3):
        graph.invoke({"messages": [HumanMessage("hi")], "more": more}, thread())
        assert graph.get_state(thread()).values["more"] == more
    if isinstance(saver, StateStoreSaver):
        saver.prune(["t"])
    forget(saver)
    assert graph.get_state(thread()).values["more"] == more


def test_an_input_that_looks_like_one_of_our_references_is_none(saver: Saver) -> None:
    config = thread(checkpoint_ns="")
    for number in range(3):
        checkpoint: Any = {
            "v": 4,
            "id": f"1f0-{number}",
            "ts": "2026-11-15T12:00:00+00:00",
            "channel_values": {"__start__": {"$said": [1]}},
            "channel_versions": {"__start__": 1},
            "versions_seen": {},
            "updated_channels": None,
        }
        config = saver.put(config, checkpoint, {"source": "input", "step": 1, "parents": {}}, {"__start__": 1})
        forget(saver)
        found = saver.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"__start__": {"$said": [1]}}


@pytest.mark.parametrize(
    ("one", "other", "are_they"),
    [
        (AIMessage("a", id="1"), AIMessage("a", id="1"), True),
        (AIMessage("a", id="1"), AIMessage("a", id="2"), False),
        (AIMessage("a", id="1"), HumanMessage("a", id="1"), False),
        (AIMessage("a", id="1", more=1), AIMessage("a", id="1", more=True), False),
        (AIMessage("a", id="1", more=1), AIMessage("a", id="1", more=1), True),
        (AIMessage(["a"], id="1"), AIMessage("a", id="1"), False),
        (AIMessage("é", id="1"), AIMessage("e", id="1"), False),
    ],
)
def test_messages_are_the_same_in_everything_or_not_at_all(
    one: BaseMessage, other: BaseMessage, are_they: bool
) -> None:
    assert are_same(one, other) is are_same(other, one) is are_equal(one, other) is are_they
    assert Roll([one]).is_as([other]) is are_they
    assert Roll([one]).common([other, "no message"]) == int(are_they)


def test_a_roll_that_grew_looks_twice_at_the_same_messages() -> None:
    said: list[BaseMessage] = [HumanMessage("a", id="1"), AIMessage("b", id="2", additional_kwargs={"n": 1})]
    roll = Roll(said[:1]).grown(1, said[1:]).grown(2, said)
    assert roll.common([*said, *said]) == 4
    changed = AIMessage("b", id="2", additional_kwargs={"n": True})
    assert roll.common([*said, said[0], changed]) == 3
    assert roll.common([said[0], changed, *said]) == 1
