"""How a thread is stored: little for each turn, each message once, and all of it comes back exactly."""

from __future__ import annotations

import copy
import json
import operator
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from adapters.langgraph.graphs import before_read, chat, put_in_namespace, say, texts, thread
from statestore import CorruptData, StateStore
from statestore.adapters.langgraph import StateStoreSaver, spoken
from statestore.adapters.langgraph.conversation import records_of
from statestore.adapters.langgraph.values import ValueCodec
from statestore.records import Record

GOLDEN = Path(__file__).parent / "golden"


class Mirrored(StateStoreSaver):
    """Ours, and what it is given goes to one of the framework's own, too."""

    def __init__(self, store: StateStore) -> None:
        super().__init__(store)
        self.mirror = InMemorySaver()

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        checkpoint = copy.deepcopy(checkpoint)  # the framework gives messages their ids meanwhile
        self.mirror.put(config, checkpoint, metadata, new_versions)
        return super().put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        writes = copy.deepcopy(writes)
        self.mirror.put_writes(config, writes, task_id, task_path)
        super().put_writes(config, writes, task_id, task_path)


def many_things(state: MessagesState) -> dict[str, Any]:
    """Answer in ways that change from turn to turn."""
    messages = state["messages"]
    match len(messages) % 7:
        case 0:
            messages[0].content = f"changed at {len(messages)}"
            return {"messages": [messages[0], AIMessage("with an id", id=f"id-{len(messages)}")]}
        case 1:
            call = {"id": "c", "name": "look", "args": {"at": len(messages)}}
            return {"messages": [AIMessage("", tool_calls=[call]), ToolMessage("seen", tool_call_id="c")]}
        case 2 if len(messages) > 20:
            return {"messages": [RemoveMessage(id=messages[3].id or "")]}
        case _:
            return {"messages": [AIMessage(f"answer {len(messages)}")]}


def test_every_checkpoint_comes_back_as_from_the_frameworks_own_saver(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    saver = Mirrored(store)
    graph = chat(saver, many_things)
    for number in range(40):
        say(graph, f"question {number}")
        if number % 13 == 12:
            saver._threads.clear()  # as in a new process
    ids = [found.checkpoint["id"] for found in saver.mirror.list(thread())]
    assert len(ids) == 120
    for fresh in (StateStoreSaver(store), saver):
        for checkpoint_id in (*ids, *ids[::-1]):
            ours, theirs = (
                one.get_tuple(thread(checkpoint_ns="", checkpoint_id=checkpoint_id)) for one in (fresh, saver.mirror)
            )
            assert ours is not None
            assert theirs is not None
            theirs.checkpoint.setdefault("updated_channels", None)
            assert dict(ours.checkpoint) == dict(theirs.checkpoint)
            assert (ours.metadata, ours.parent_config) == (theirs.metadata, theirs.parent_config)
            assert sorted(ours.pending_writes or [], key=repr) == sorted(theirs.pending_writes or [], key=repr)


def test_a_short_message_takes_little_more_than_itself(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        graph = chat(StateStoreSaver(store), lambda _: {"messages": [AIMessage("a" * 200)]})
        for _ in range(20):
            say(graph, "u" * 200)
        before = store.list_sessions()[0].size
        for _ in range(60):
            say(graph, "u" * 200)
        assert store.list_sessions()[0].size - before < 4 * 60 * 400


def test_two_savers_that_take_turns_leave_a_thread_that_a_third_one_understands(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    savers = [our_saver, StateStoreSaver(store)]
    graphs = [chat(saver) for saver in savers]
    for number in range(30):
        say(graphs[number % 3 % 2], str(number))
    seen = [list(saver.list(thread())) for saver in (*savers, StateStoreSaver(store))]
    assert len(seen[0]) == 90
    assert seen[0] == seen[1] == seen[2]
    assert texts(graphs[0]) == [text for n in range(30) for text in (str(n), f"You said: {n}")]


def _checkpoint(messages: list[BaseMessage], version: int) -> Any:
    return empty_checkpoint() | {"channel_values": {"messages": messages}, "channel_versions": {"messages": version}}


@pytest.mark.parametrize("is_in_a_new_process", [False, True])
def test_a_message_that_is_given_an_id_later_is_one_message(
    our_saver: StateStoreSaver, is_in_a_new_process: bool
) -> None:
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    first = our_saver.put(thread(checkpoint_ns=""), _checkpoint([], 1), metadata, {"messages": 1})
    our_saver.put_writes(first, [("messages", [AIMessage("Yes."), AIMessage("Yes.")])], "task")
    if is_in_a_new_process:
        our_saver._threads.clear()
        assert our_saver.get_tuple(first) is not None
    said: list[BaseMessage] = [AIMessage("Yes.", id="one"), AIMessage("Yes.", id="two")]
    second = our_saver.put(first, _checkpoint(said, 2), metadata, {"messages": 2})
    for _ in range(2):
        found = [our_saver.get_tuple(config) for config in (first, second)]
        assert found[0] is not None
        assert found[1] is not None
        assert found[0].pending_writes == [("task", "messages", [AIMessage("Yes."), AIMessage("Yes.")])]
        assert found[1].checkpoint["channel_values"]["messages"] == said
        our_saver._threads.clear()
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [response.content for response in session.agent_responses] == ["Yes.", "Yes."]
    our_saver.prune(["t"])
    found = our_saver.get_tuple(second)
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == said


def test_a_message_that_is_given_its_id_while_it_is_stored_is_the_same_for_everybody(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = AIMessage("Yes.")

    def records_and_then_an_id(message: BaseMessage, codec: ValueCodec) -> list[Record]:
        records = records_of(message, codec)
        said.id = "given in that instant, by another thread"
        return records

    monkeypatch.setattr(spoken, "records_of", records_and_then_an_id)
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    config = our_saver.put(thread(checkpoint_ns=""), _checkpoint([], 1), metadata, {"messages": 1})
    our_saver.put_writes(config, [("messages", [said])], "task")
    for saver in (our_saver, StateStoreSaver(our_saver._access._opened_plainly())):
        found = saver.get_tuple(config)
        assert found is not None
        assert found.pending_writes == [("task", "messages", [AIMessage("Yes.")])]


def test_what_was_written_to_one_checkpoint_is_not_taken_for_what_another_says(our_saver: StateStoreSaver) -> None:
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    first, second = (
        our_saver.put(thread(checkpoint_ns=""), _checkpoint([], 1), metadata, {"messages": 1}) for _ in range(2)
    )
    our_saver.put_writes(first, [("messages", [AIMessage("Yes.")])], "task")
    our_saver.put(second, _checkpoint([AIMessage("Yes.", id="one")], 2), metadata, {"messages": 2})
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [response.content for response in session.agent_responses] == ["Yes.", "Yes."]


def _answers_and_asks(saver: StateStoreSaver) -> Any:
    """A graph with a node that answers, and one beside it that asks whether it may."""
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda _: {"messages": [AIMessage("Done.")]})
    builder.add_node("ask", lambda _: {"messages": [AIMessage(f"allowed: {interrupt('May I?')}")]})
    for node in ("answer", "ask"):
        builder.add_edge(START, node)
        builder.add_edge(node, END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("is_in_a_new_process", [False, True])
def test_a_message_that_waits_for_its_id_is_in_the_session_once(
    our_saver: StateStoreSaver, is_in_a_new_process: bool
) -> None:
    graph = _answers_and_asks(our_saver)
    graph.invoke({"messages": [HumanMessage("Do it.")]}, thread())
    if is_in_a_new_process:
        our_saver._threads.clear()
    said = [message.content for message in graph.invoke(Command(resume="yes"), thread())["messages"]]
    assert sorted(said) == ["Do it.", "Done.", "allowed: yes"]
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [message.content for message in session.user_messages] == ["Do it."]
    assert sorted(response.content for response in session.agent_responses) == ["Done.", "allowed: yes"]
    ids = [message.id for message in graph.get_state(thread()).values["messages"]]
    our_saver._threads.clear()
    assert [message.id for message in graph.get_state(thread()).values["messages"]] == ids
    assert all(ids)


def test_what_is_said_twice_without_an_id_is_in_the_session_twice(our_saver: StateStoreSaver) -> None:
    state = TypedDict("state", {"messages": Annotated[list[AnyMessage], operator.add]})  # noqa: UP013
    builder = StateGraph(state)
    builder.add_node("agent", lambda _: {"messages": [AIMessage("Yes.")]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph = builder.compile(checkpointer=our_saver)
    for _ in range(3):
        graph.invoke({"messages": [HumanMessage("Really?")]}, thread())
    our_saver._threads.clear()
    messages: list[BaseMessage] = graph.get_state(thread()).values["messages"]
    assert [(message.content, message.id) for message in messages] == [("Really?", None), ("Yes.", None)] * 3
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert len(session.user_messages) == len(session.agent_responses) == 3


def test_a_message_without_an_id_that_is_written_after_it_was_listed_is_in_the_session_once(
    our_saver: StateStoreSaver,
) -> None:
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    asked, said = HumanMessage("Really?"), AIMessage("Yes.")
    input: Any = empty_checkpoint() | {"channel_values": {"__start__": {"messages": [asked]}}}
    begun = our_saver.put(thread(checkpoint_ns=""), input, metadata, {"__start__": 1})
    heard = our_saver.put(begun, _checkpoint([asked], 2), metadata, {"messages": 2})
    our_saver.put_writes(begun, [("messages", [asked])], "input")
    our_saver.put(heard, _checkpoint([asked, said, said], 3), metadata, {"messages": 3})
    our_saver.put_writes(heard, [("messages", [said])], "one")
    our_saver.put_writes(heard, [("messages", [said])], "another")
    our_saver._threads.clear()
    found = [our_saver.get_tuple(config) for config in (begun, heard)]
    writes = [sorted(one.pending_writes or [], key=repr) for one in found if one is not None]
    assert writes == [
        [("input", "messages", [asked])],
        [("another", "messages", [said]), ("one", "messages", [said])],
    ]
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [message.content for message in session.user_messages] == ["Really?"]
    assert [response.content for response in session.agent_responses] == ["Yes.", "Yes."]


def test_a_step_may_bring_any_number_of_messages_without_an_id(our_saver: StateStoreSaver) -> None:
    metadata: Any = {"source": "loop", "step": 1, "parents": {}}
    said: list[BaseMessage] = [AIMessage(f"Number {number}") for number in range(150)]
    first = our_saver.put(thread(checkpoint_ns=""), _checkpoint([], 1), metadata, {"messages": 1})
    for number, message in enumerate(said[:75]):
        our_saver.put_writes(first, [("messages", [message])], f"early {number}")
    our_saver.put(first, _checkpoint(said, 2), metadata, {"messages": 2})
    for number, message in enumerate(said[75:]):
        our_saver.put_writes(first, [("messages", [message])], f"late {number}")
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert sorted(response.content for response in session.agent_responses) == sorted(str(each.text) for each in said)


@pytest.mark.parametrize("id", ["=AAAAAAAAAAAAAAAAAAAAAA", "==", "AAAAAAAA-0000-0000-0000-000000000000", "x" * 36, ""])
def test_ids_of_any_form_come_back(our_saver: StateStoreSaver, id: str) -> None:
    config = thread(checkpoint_ns="")
    for number in range(6):
        checkpoint: Any = empty_checkpoint() | {"id": f"{id}{number}", "channel_versions": {"n": number}}
        checkpoint["channel_values"] = {"n": number}
        config = our_saver.put(config, checkpoint, {"source": "loop", "step": number, "parents": {}}, {"n": number})
        our_saver.put_writes(config, [("n", None)], f"{id}{number}", "path" * 20)
        our_saver.put_writes(config, [("n", None)], id, "path" * 20)
    our_saver._threads.clear()
    found = list(our_saver.list(thread()))
    assert [one.checkpoint["id"] for one in found] == [f"{id}{number}" for number in range(6)][::-1]
    assert [{task for task, _, _ in one.pending_writes or []} for one in found] == [
        {id, f"{id}{number}"} for number in range(6)
    ][::-1]


def test_a_thread_in_the_form_of_before_is_read_and_carried_on(tmp_path: Path) -> None:
    sessions = tmp_path / "store" / "sessions"
    sessions.mkdir(parents=True)
    (sessions / "t.json").write_bytes((GOLDEN / "whole_notes.json").read_bytes())
    expected = json.loads((GOLDEN / "whole_notes_expected.json").read_bytes())
    with StateStoreSaver(f"file:{tmp_path / 'store'}") as saver:
        for one in expected:
            found = saver.get_tuple(thread(checkpoint_ns="", checkpoint_id=one["id"]))
            assert found is not None
            messages = found.checkpoint["channel_values"].get("messages", [])
            assert (found.metadata["step"], len(messages)) == (one["step"], one["said"])
            assert [[message.id, message.text] for message in messages[-2:]] == one["last"]
            assert found.checkpoint["channel_versions"] == one["versions"]
            parent = found.parent_config and found.parent_config["configurable"]["checkpoint_id"]  # type: ignore[typeddict-item]
            assert parent == one["parent"]
            assert [
                [channel, [message.text for message in value] if channel == "messages" else None]
                for _, channel, value in found.pending_writes or []
            ] == one["writes"]
        graph = chat(saver)
        assert say(graph, "and on")[-2:] == ["and on", "You said: and on"]
        saver._threads.clear()
        assert len(texts(graph)) == expected[0]["said"] + 2
        saver.prune(["t"])
        assert texts(graph)[-2:] == ["and on", "You said: and on"]


def test_a_checkpoint_that_is_like_a_missing_one_names_it(sqlite_url: str, tmp_path: Path) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        graph = chat(saver)
        for number in range(20):
            say(graph, str(number))
        connection = sqlite3.connect(tmp_path / "state.db")
        changed = connection.execute(
            'UPDATE records SET body = replace(body, \'"v":\', \'"w":\') WHERE body LIKE \'%"langgraph":{"v":%\''
        )
        assert changed.rowcount > 0
        connection.commit()
        connection.close()
        saver._threads.clear()
        with pytest.raises(CorruptData, match=r"thread t: record \d+"):
            texts(graph)


@pytest.mark.parametrize("moment", range(1, 5))
def test_a_thread_that_is_pruned_while_it_is_read_is_read_anew(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    with StateStoreSaver(sqlite_url) as reader, StateStoreSaver(sqlite_url) as pruner:
        graph = chat(reader)
        below = put_in_namespace(reader, "below", "kept")
        for number in range(30):
            said = say(graph, str(number))
        reader._threads.clear()
        before_read(monkeypatch, moment, lambda: pruner.prune(["t"]))
        assert texts(graph) == said
        reader._threads.clear()
        put_in_namespace(pruner, "", "newer")
        before_read(monkeypatch, moment, lambda: pruner.prune(["t"]))
        found = reader.get_tuple(thread(checkpoint_ns="below"))
        assert found is not None
        assert (found.config, found.checkpoint["channel_values"]) == (below, {"x": "kept"})


@pytest.mark.parametrize("moment", range(1, 9))
def test_a_thread_that_is_pruned_while_it_is_listed_is_listed_as_far_as_it_is_left(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    with StateStoreSaver(sqlite_url) as reader, StateStoreSaver(sqlite_url) as pruner:
        graph = chat(reader)
        for number in range(30):
            say(graph, str(number))
        newest, *others = list(reader.list(thread()))
        reader._threads.clear()
        before_read(monkeypatch, moment, lambda: pruner.prune(["t"]))
        first, *rest = list(reader.list(thread()))
        assert first == newest
        assert all(found in others for found in rest)


@pytest.mark.parametrize("moment", range(1, 5))
def test_a_thread_that_is_pruned_while_it_is_written_to_holds_what_was_written(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    with StateStoreSaver(sqlite_url) as writer, StateStoreSaver(sqlite_url) as pruner:
        graph = chat(writer)
        for number in range(30):
            say(graph, str(number))
        parent = writer.get_tuple(thread())
        assert parent is not None
        messages = [*parent.checkpoint["channel_values"]["messages"], AIMessage("more", id="more")]
        checkpoint: Any = empty_checkpoint() | {
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": 1000},
        }
        writer._threads.clear()
        before_read(monkeypatch, moment, lambda: pruner.prune(["t"]))
        config = writer.put(parent.config, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"messages": 1000})
        found = writer.get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == messages


def test_what_a_caller_does_to_a_message_in_any_channel_changes_nothing_stored(our_saver: StateStoreSaver) -> None:
    checkpoint: Any = empty_checkpoint() | {
        "channel_values": {"last": AIMessage("x", additional_kwargs={"seen": {"by": 1}})},
        "channel_versions": {"last": 1},
    }
    config = our_saver.put(
        thread(checkpoint_ns=""), checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"last": 1}
    )
    for _ in range(2):
        found = our_saver.get_tuple(config)
        assert found is not None
        message = found.checkpoint["channel_values"]["last"]
        assert message.additional_kwargs == {"seen": {"by": 1}}
        message.additional_kwargs["seen"]["by"] = 2
