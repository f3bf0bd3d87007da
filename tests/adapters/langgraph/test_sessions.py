"""A thread is a session: what people and programs see of it, and what our own commands do to it."""

from __future__ import annotations

import asyncio
import copy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from adapters.langgraph.graphs import Reversing, chat, say, texts, thread
from adapters.reading import assert_readable
from statestore import (
    AsyncStateStore,
    Event,
    InvalidValue,
    NotSupported,
    StateStore,
    StoreClosed,
    UserMessage,
    WrongUser,
)
from statestore.adapters.handoff import turns_in
from statestore.adapters.identifiers import stored_id
from statestore.adapters.langgraph import StateStoreSaver
from statestore.adapters.turns import Said, ToolCall, ToolResult
from statestore.copying import copy_store


def with_a_tool(state: Any) -> dict[str, Any]:
    call = {"id": "c1", "name": "timetable", "args": {"before": "12:00"}}
    return {
        "messages": [
            AIMessage("", tool_calls=[call]),
            ToolMessage("10:40, 11:15", tool_call_id="c1", name="timetable"),
            AIMessage("The 10:40."),
        ]
    }


def test_a_thread_is_readable_by_a_person(store_url: str) -> None:
    with StateStoreSaver(store_url) as saver:
        say(chat(saver, with_a_tool), "Which ferry arrives before noon?", "trip")
    seen = assert_readable(
        store_url, "trip", user="Which ferry arrives before noon?", agent="The 10:40.", word="ferry", event="tool_call"
    )
    assert "tool_result" in seen.show
    assert seen.show.count("Which ferry arrives before noon?") == 2  # the title, and the message


def test_every_message_is_in_the_session_once(our_saver: StateStoreSaver) -> None:
    graph = chat(our_saver, with_a_tool)
    for question in ("one", "two", "one"):
        say(graph, question)
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [message.content for message in session.user_messages] == ["one", "two", "one"]
    assert [response.content for response in session.agent_responses] == ["The 10:40."] * 3
    kinds = [event.kind for event in session.events]
    assert (kinds.count("tool_call"), kinds.count("tool_result"), kinds.count("checkpoint")) == (3, 3, 9)


def test_another_framework_is_handed_the_conversation(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        say(chat(saver, with_a_tool), "Which ferry?")
    with StateStore.open(sqlite_url) as store:
        session = store.load_session("t")
        assert session is not None
        assert turns_in(session) == [
            Said("user", "Which ferry?"),
            ToolCall("c1", "timetable", '{"before":"12:00"}'),
            ToolResult("c1", "10:40, 11:15", "timetable"),
            Said("assistant", "The 10:40."),
        ]


def test_a_list_that_grows_by_a_message_stores_one_message(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        graph = chat(StateStoreSaver(store))
        sizes: list[int] = []
        for number in range(120):
            say(graph, f"{number:04}" * 125)
            sizes.append(store.list_sessions()[0].size)
        steps = [after - before for before, after in pairwise(sizes)]
        assert max(steps[-20:]) < 1.5 * max(steps[:20])
        assert sizes[-1] < 5 * 120 * 2 * 500


def test_a_new_saver_reads_little_of_a_long_thread(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        graph = chat(StateStoreSaver(store))
        for number in range(60):
            say(graph, str(number))
        fresh = StateStoreSaver(store)
        state = fresh.get_tuple(thread())
        assert state is not None
        assert len(state.checkpoint["channel_values"]["messages"]) == 120
        assert fresh._threads["t"].view.floor > 100


def test_two_savers_see_what_the_other_wrote(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    one, other = chat(our_saver), chat(StateStoreSaver(store))
    for number in range(6):
        say((one, other)[number % 2], str(number))
    assert texts(one) == texts(other) == [text for n in range(6) for text in (str(n), f"You said: {n}")]


def test_a_rewound_and_a_removed_thread_are_noticed(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    graph = chat(our_saver)
    say(graph, "one")
    length = len(store.timeline("t"))
    say(graph, "two")
    store.rewind_session("t", to=store.timeline("t")[length - 1].seq or 0)
    assert texts(graph) == ["one", "You said: one"]
    assert say(graph, "three") == ["one", "You said: one", "three", "You said: three"]
    store.delete_session("t")
    assert texts(graph) == []
    assert say(graph, "anew") == ["anew", "You said: anew"]


def test_an_edit_that_would_renumber_a_thread_is_refused(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        graph = chat(StateStoreSaver(store))
        for number in range(3):
            say(graph, str(number))
        before = store.timeline("t")
        session = store.load_session("t")
        assert session is not None
        session.user_messages[1] = UserMessage("[redacted]")
        with pytest.raises(NotSupported, match="is a LangGraph thread"):
            store.save_session(session)
        assert store.timeline("t") == before
        assert say(graph, "3")[2:] == ["1", "You said: 1", "2", "You said: 2", "3", "You said: 3"]

        store.append("t", Event("feedback", "bad"), Event("feedback", "good"))
        store.update_session_with("t", lambda session: session.events.pop(-2))
        last = store.load_session("t")
        assert last is not None
        del last.events[-1:], last.user_messages[3:], last.agent_responses[3:]
        last.events[:] = [event for event in last.events if event.timestamp < session.updated_at]
        store.save_session(last)
        assert texts(chat(StateStoreSaver(store))) == ["0", "You said: 0", "1", "You said: 1", "2", "You said: 2"]


def test_a_message_is_redacted_in_the_graph_and_then_pruned(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        saver = StateStoreSaver(store)
        graph = chat(saver, with_a_tool)
        for text in ("the word is swordfish", "and so on"):
            say(graph, text)
        secret = graph.get_state(thread()).values["messages"][0]
        graph.update_state(thread(), {"messages": [HumanMessage("[redacted]", id=secret.id)]}, as_node="agent")
        assert any(b"swordfish" in entry.record.json for entry in store.timeline("t"))
        saver.prune(["t"])
        assert not any(b"swordfish" in entry.record.json for entry in store.timeline("t"))
        assert [texts(graph)[place] for place in (0, 4)] == ["[redacted]", "and so on"]


def test_a_fork_and_a_copy_are_whole_threads(our_saver: StateStoreSaver, tmp_path: Path) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    graph = chat(our_saver)
    say(graph, "one")
    store.fork_session("t", new_id="fork")
    assert say(graph, "two", "fork") == ["one", "You said: one", "two", "You said: two"]
    assert texts(graph) == ["one", "You said: one"]
    with StateStore.open(f"sqlite:{tmp_path / 'copy.db'}") as copied:
        copy_store(store, copied)
        assert texts(chat(StateStoreSaver(copied)), "fork") == texts(graph, "fork")


def test_pruning_leaves_what_the_newest_checkpoint_needs_and_nothing_else(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    graph = chat(our_saver, with_a_tool)
    for number in range(5):
        say(graph, str(number))
    state = graph.get_state(thread())
    before = store.list_sessions()[0]
    store.append("t", Event("note", "of somebody else's"))
    our_saver.prune(["t"])
    after = store.list_sessions()[0]
    assert graph.get_state(thread()) == state
    assert (after.message_count, after.response_count, after.title) == (
        before.message_count,
        before.response_count,
        "0",
    )
    kinds = [entry.kind for entry in store.timeline("t")]
    assert (kinds.count("checkpoint"), kinds.count("tool_call"), kinds.count("note")) == (1, 5, 1)
    assert say(graph, "more")[-5:-3] == ["The 10:40.", "more"]
    assert len(list(our_saver.list(thread()))) == 4


def test_deleting_a_run_leaves_the_others(our_saver: StateStoreSaver) -> None:
    graph = chat(our_saver)
    for run in ("first", "second"):
        graph.invoke({"messages": [HumanMessage(run)]}, thread() | {"metadata": {"run_id": f"run-{run}"}})
    our_saver.delete_for_runs(["run-second"])
    assert texts(graph) == ["first", "You said: first"]
    session = our_saver._access.call(lambda store: store.load_session("t"))
    assert session is not None
    assert [message.content for message in session.user_messages] == ["first"]
    our_saver.delete_for_runs(["run-first"])
    assert our_saver._access.call(lambda store: store.load_session("t")) is None


def test_a_pending_write_survives_pruning(our_saver: StateStoreSaver) -> None:
    graph = chat(our_saver)
    say(graph, "one")
    newest = our_saver.get_tuple(thread())
    assert newest is not None
    our_saver.put_writes(newest.config, [("messages", [AIMessage("pending", id="p")]), ("n", 1)], "task")
    our_saver.prune(["t"])
    found = our_saver.get_tuple(thread())
    assert found is not None
    assert found.pending_writes == [("task", "messages", [AIMessage("pending", id="p")]), ("task", "n", 1)]
    assert found.checkpoint == newest.checkpoint


def test_a_copy_is_listed_under_its_own_id_however_long_that_is(our_saver: StateStoreSaver) -> None:
    say(chat(our_saver), "one")
    for source, target in (("t", "a" * 300), ("a" * 300, "b" * 300)):
        our_saver.copy_thread(source, target)
    listed = {found.config["configurable"]["thread_id"] for found in our_saver.list(None)}  # type: ignore[typeddict-item]
    assert listed == {"t", "a" * 300, "b" * 300}


def test_a_thread_whose_id_nobody_knows_hides_no_others(
    our_saver: StateStoreSaver, caplog: pytest.LogCaptureFixture
) -> None:
    graph = chat(our_saver)
    for thread_id in ("t", "a" * 300):
        say(graph, "one", thread_id)
    nameless = stored_id("a" * 300)
    our_saver._access.call(
        lambda store: store.update_session_with(nameless, lambda session: session.metadata.pop("original_id"))
    )
    assert {found.config["configurable"]["thread_id"] for found in our_saver.list(None)} == {"t"}  # type: ignore[typeddict-item]
    assert nameless in caplog.text


def test_threads_of_other_users_look_absent(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        alice, bob = (chat(StateStoreSaver(store, user_id=user)) for user in ("alice", "bob"))
        say(alice, "mine")
        assert store.list_sessions()[0].user_id == "alice"
        assert texts(bob) == []
        assert list(bob.get_state_history(thread())) == []
        with pytest.raises(WrongUser):
            say(bob, "mine now")
        assert texts(alice) == ["mine", "You said: mine"]


def test_with_an_encrypting_serializer_nothing_is_readable(sqlite_url: str, tmp_path: Path) -> None:
    with StateStoreSaver(sqlite_url, serde=EncryptedSerializer(Reversing())) as saver:
        graph = chat(saver)
        say(graph, "a secret word")
        assert say(graph, "again")[:2] == ["a secret word", "You said: a secret word"]
        saver._threads.clear()
        assert texts(graph)[0] == "a secret word"
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("state.db*"))
    assert b"a secret word" not in stored


def test_runs_are_deleted_whatever_the_serializer(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url, serde=EncryptedSerializer(Reversing())) as saver:
        graph = chat(saver)
        for run in ("first", "second"):
            graph.invoke({"messages": [HumanMessage(run)]}, thread() | {"metadata": {"run_id": f"run-{run}"}})
        saver.delete_for_runs(["run-second"])
        assert texts(graph) == ["first", "You said: first"]


def test_nothing_is_pickled(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url, serde=JsonPlusSerializer(pickle_fallback=True)) as saver:
        checkpoint = empty_checkpoint() | {"channel_values": {"x": object()}, "channel_versions": {"x": 1}}
        with pytest.raises(InvalidValue, match="pickled"):
            saver.put(thread(checkpoint_ns=""), checkpoint, {}, {"x": 1})  # type: ignore[arg-type]
        assert saver.get_tuple(thread()) is None


def test_what_cannot_be_stored_is_refused_before_anything_is(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        checkpoint = empty_checkpoint() | {"channel_values": {"x": lambda: 0}, "channel_versions": {"x": 1}}
        with pytest.raises(TypeError):
            saver.put(thread(checkpoint_ns=""), checkpoint, {}, {"x": 1})  # type: ignore[arg-type]
        assert saver.get_tuple(thread()) is None


def test_who_opened_the_store_closes_it(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        with StateStoreSaver(store) as saver:
            say(chat(saver), "one")
        assert store.list_sessions()
    with StateStoreSaver(sqlite_url) as saver:
        assert texts(chat(saver)) == ["one", "You said: one"]
    with pytest.raises(StoreClosed):
        saver.get_tuple(thread())


def test_asynchronous_graphs_run_on_an_asynchronous_store(store_url: str) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(store_url) as store:
            graph = chat(StateStoreSaver(store))
            jobs = [graph.ainvoke({"messages": [HumanMessage(str(n))]}, thread(f"t{n}")) for n in range(20)]
            await asyncio.gather(*jobs)
            for number in range(20):
                state = await graph.aget_state(thread(f"t{number}"))
                assert [m.content for m in state.values["messages"]] == [str(number), f"You said: {number}"]
            with pytest.raises(NotSupported):
                graph.get_state(thread("t1"))
            assert (await asyncio.to_thread(graph.get_state, thread("t1"))).values
            assert len([found async for found in graph.aget_state_history(thread("t1"))]) == 3

    asyncio.run(run())


@pytest.mark.skipif(not hasattr(StateStoreSaver, "with_allowlist"), reason="langgraph-checkpoint has it from 4.0.1 on")
def test_a_clone_with_another_allowlist_shares_the_store(sqlite_url: str) -> None:
    with StateStoreSaver(sqlite_url, serde=JsonPlusSerializer(allowed_msgpack_modules=None)) as saver:
        say(chat(saver), "one")
        clone = saver.with_allowlist([("x", "Y")])
        assert texts(chat(clone)) == ["one", "You said: one"]
        assert texts(chat(copy.copy(saver))) == ["one", "You said: one"]
