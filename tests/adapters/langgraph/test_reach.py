"""How much of a thread is read: as much as a question is about, however long the thread is."""

from __future__ import annotations

import asyncio
import sqlite3
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import MessagesState

from adapters.far import FarEngine
from adapters.langgraph.graphs import chat, records_read, say, texts, thread
from statestore import AsyncStateStore, StateStore, StoreUnavailable
from statestore.adapters.langgraph import StateStoreSaver, listing, reading

LENGTH = 300
"""Checkpoints in a long thread, each with writes."""
FEW = 60
METADATA: Any = {"source": "loop", "step": 1, "parents": {}}


def _checkpoint(channel: str, value: Any, version: int, **fields: Any) -> Any:
    return empty_checkpoint() | {"channel_values": {channel: value}, "channel_versions": {channel: version}} | fields


def _long_thread(saver: BaseCheckpointSaver[Any], length: int = LENGTH) -> list[Any]:
    """Fill a thread; its checkpoints, oldest first. Nothing is known of it then."""
    configs = [thread(checkpoint_ns="")]
    for step in range(length):
        configs.append(saver.put(configs[-1], _checkpoint("n", step, step), {**METADATA, "step": step}, {"n": step}))
        saver.put_writes(configs[-1], [("n", step + 1)], "task")
    _forget(saver)
    return configs[1:]


def _forget(saver: Any) -> None:
    """As in a new process."""
    saver._threads.clear()


def _steps(found: Any) -> list[int]:
    return [one.metadata["step"] for one in found]


@pytest.mark.parametrize("limit", [1, 10])
def test_the_newest_checkpoints_are_listed_without_the_others(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    configs = _long_thread(our_saver)
    newest = list(range(LENGTH))[::-1]
    reads = records_read(monkeypatch)
    asked: list[tuple[dict[str, Any], list[int]]] = [
        ({"config": thread()}, newest[:limit]),
        ({"config": thread(checkpoint_ns="")}, newest[:limit]),
        ({"config": thread(), "before": configs[-5]}, newest[5 : 5 + limit]),
        ({"config": thread(), "filter": {"step": LENGTH - 3}}, newest[2:3]),
        ({"config": configs[-5]}, newest[4:5]),
        ({"config": None}, newest[:limit]),
    ]
    for kwargs, steps in asked:
        reads.clear()
        found = list(our_saver.list(**kwargs, limit=min(limit, len(steps))))
        assert _steps(found) == steps
        assert all(one.pending_writes == [("task", "n", one.metadata["step"] + 1)] for one in found)
        assert sum(reads) < FEW
        assert len(reads) <= 4
        _forget(our_saver)
    reads.clear()
    assert _steps(our_saver.list(thread())) == newest
    assert (sum(reads), len(reads)) == (2 * LENGTH, 2)


def test_a_history_is_read_as_far_as_it_is_asked_for(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        graph = chat(saver, _keeping_few)
        for number in range(LENGTH // 3):
            say(graph, str(number))
        history = list(graph.get_state_history(thread()))
        reads = records_read(monkeypatch)
        for limit in (1, 3):
            _forget(saver)
            reads.clear()
            assert list(graph.get_state_history(thread(), limit=limit)) == history[:limit]
            assert sum(reads) < 2 * FEW


def test_a_checkpoint_that_would_be_newer_than_all_is_not_looked_for(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long_thread(our_saver)
    reads = records_read(monkeypatch)
    for found in (
        our_saver.get_tuple(thread(checkpoint_ns="", checkpoint_id=empty_checkpoint()["id"])),
        *our_saver.list(thread(checkpoint_id=empty_checkpoint()["id"])),
    ):
        assert found is None
    assert sum(reads) < FEW


def test_a_checkpoint_that_comes_late_does_not_have_the_thread_read(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = empty_checkpoint()["id"]
    configs = _long_thread(our_saver)
    our_saver.put(configs[0], _checkpoint("n", "late", 1, id=late), METADATA, {"n": 1})
    _forget(our_saver)
    reads = records_read(monkeypatch)
    found = our_saver.get_tuple(thread())
    assert found is not None
    assert found.config == configs[-1]
    assert _steps(our_saver.list(thread(), limit=2)) == [LENGTH - 1, LENGTH - 2]
    assert sum(reads) < FEW
    *_, last_but_one, last = our_saver.list(thread())
    assert [last_but_one.config, last.checkpoint["id"]] == [configs[0], late]


def test_a_checkpoint_is_not_late_because_somebody_came_between(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    savers = our_saver, StateStoreSaver(store)
    for step in range(6):
        savers[step % 2].put(thread(checkpoint_ns=""), _checkpoint("n", step, step), METADATA, {"n": step})
    session = store.load_session("t")
    assert session is not None
    assert ["late" in event.extra["langgraph"] for event in session.events] == [False] * 6


@pytest.mark.parametrize("seed", range(30))
def test_checkpoints_in_any_order_are_listed_and_found_as_by_the_frameworks_own_saver(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(reading, "_FIRST_READ", chance.choice([2, 5, 48]))
    monkeypatch.setattr(reading, "_NEXT_READ", chance.choice([1, 10]))
    monkeypatch.setattr(listing, "_PAGE", chance.choice([1, 20]))
    disorder = chance.choice([0, 0.05, 0.5])
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    with StateStore.open("memory:") as store:
        ours, theirs = StateStoreSaver(store), SqliteSaver(connection)
        known: list[tuple[str, str]] = []

        def savers() -> tuple[Any, Any]:
            return chance.choice([ours, StateStoreSaver(store)]), theirs

        for step in range(40):
            moment = step if chance.random() >= disorder else chance.randrange(step + 1)
            ns, id = chance.choice(["", "", "below"]), f"{moment:03}-{step:03}"
            if known and chance.random() < 0.1:
                ns, id = chance.choice(known)  # stored once more
            if chance.random() < 0.2:
                for saver in savers():
                    saver.put_writes(thread(checkpoint_ns=ns, checkpoint_id=id), [("n", "early")], "early")
            for saver in savers():
                metadata = {**METADATA, "step": step, "kind": step % 3}
                saver.put(thread(checkpoint_ns=ns), _checkpoint("n", step, step, id=id), metadata, {"n": step})
            known = [*dict.fromkeys([*known, (ns, id)])]
            for _ in range(chance.choice([0, 1, 4])):
                to, task = chance.choice(known), str(chance.randrange(3))
                for saver in savers():
                    saver.put_writes(thread(checkpoint_ns=to[0], checkpoint_id=to[1]), [("n", step)], task)
        for _ in range(20):
            config = thread(**chance.choice([{}, {"checkpoint_ns": ""}, {"checkpoint_ns": "below"}]))
            which: dict[str, Any] = {
                "filter": chance.choice([None, {"kind": 1}]),
                "before": chance.choice([None, thread(checkpoint_id=chance.choice(known)[1])]),
                "limit": chance.choice([None, 1, 2, 10]),
            }
            one, other = savers()
            assert [*map(_told, one.list(config, **which))] == [*map(_told, other.list(config, **which))]
            for checkpoint_id in (None, chance.choice(known)[1], "000"):
                config = thread(checkpoint_ns=chance.choice(["", "below", "none"]))
                config["configurable"] |= {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
                one, other = savers()
                assert _told(one.get_tuple(config)) == _told(other.get_tuple(config))
    connection.close()


def _told(found: CheckpointTuple | None) -> Any:
    if found is None:
        return None
    return found.config, found.metadata, found.checkpoint["channel_values"], found.pending_writes


def test_checkpoints_of_two_namespaces_may_have_one_id(our_saver: StateStoreSaver) -> None:
    config = thread(checkpoint_ns="below")
    below = our_saver.put(config, _checkpoint("n", "below", 1, id="5"), METADATA, {"n": 1})
    for step in range(30):
        above = our_saver.put(thread(checkpoint_ns=""), _checkpoint("n", step, step, id="5"), METADATA, {"n": step})
        our_saver.put_writes(above, [("n", step)], str(step))
    _forget(our_saver)
    assert [_told(our_saver.get_tuple(one)) for one in (below, above)] == [
        (below, METADATA, {"n": "below"}, []),
        (above, METADATA, {"n": 29}, [(str(step), "n", step) for step in sorted(range(30), key=str)]),
    ]
    _forget(our_saver)
    assert len(list(our_saver.list(thread()))) == len(list(our_saver.list(thread(checkpoint_id="5")))) == 2


def test_a_listing_goes_on_behind_what_is_removed_meanwhile(our_saver: StateStoreSaver) -> None:
    for step in range(60):
        metadata: Any = {**METADATA, "step": step, "run_id": f"run-{step // 10}"}
        our_saver.put(thread(checkpoint_ns=""), _checkpoint("n", step, step), metadata, {"n": step})
    _forget(our_saver)
    found = our_saver.list(thread(), limit=40)
    seen = [next(found) for _ in range(20)]
    our_saver.delete_for_runs(["run-3"])
    assert _steps([*seen, *found]) == [*range(59, 39, -1), *range(29, 9, -1)]


def test_a_limit_of_none_lists_none_and_reads_nothing(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        _long_thread(saver, 3)
        reads = records_read(monkeypatch)
        assert list(saver.list(thread(), limit=0)) == []
        assert reads == []


# -- Messages


def _keeping_few(state: MessagesState) -> dict[str, Any]:
    """Answer, and forget all but the first message and the last few."""
    removed = [RemoveMessage(id=message.id or "") for message in state["messages"][1:-4]]
    return {"messages": [*removed, AIMessage(f"answer to {state['messages'][-1].content}")]}


def test_a_message_that_lies_far_back_is_read_without_what_lies_between(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = chat(our_saver, _keeping_few)
    for number in range(LENGTH // 3):
        said = say(graph, str(number))
    assert (said[0], len(said)) == ("0", 6)
    _forget(our_saver)
    reads = records_read(monkeypatch)
    assert texts(graph) == said
    assert sum(reads) < 2 * FEW


def test_a_message_is_given_its_id_however_much_later(our_saver: StateStoreSaver) -> None:
    first = our_saver.put(thread(checkpoint_ns=""), _checkpoint("messages", [], 1), METADATA, {"messages": 1})
    our_saver.put_writes(first, [("messages", [AIMessage("Yes.")])], "task")
    for number in range(40):
        our_saver.put_writes(first, [("n", number)], f"task {number}")
    said: list[BaseMessage] = [AIMessage("Yes.", id="one")]
    config = our_saver.put(first, _checkpoint("messages", said, 2), METADATA, {"messages": 2})
    for number in range(3, LENGTH):
        said = [said[0], HumanMessage(str(number), id=str(number))]
        config = our_saver.put(config, _checkpoint("messages", said, number), METADATA, {"messages": number})
    _forget(our_saver)
    found = our_saver.get_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"]["messages"] == said


def test_a_message_is_read_once_with_the_id_that_it_was_given_and_without(
    our_saver: StateStoreSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, said = thread(checkpoint_ns=""), list[BaseMessage]()
    for number in range(30):
        config = our_saver.put(config, _checkpoint("messages", said, number), METADATA, {"messages": number})
        our_saver.put_writes(config, [("messages", [AIMessage(str(number))])], "task")
        said = [*said, AIMessage(str(number), id=f"id {number}")]
    _forget(our_saver)
    reads = records_read(monkeypatch)
    for number, found in zip(reversed(range(30)), our_saver.list(thread()), strict=True):
        assert found.checkpoint["channel_values"]["messages"] == said[:number]
        assert found.pending_writes == [("task", "messages", [AIMessage(str(number))])]
    assert len(reads) == 2


# -- Writing and copying


def test_what_is_stored_after_a_failure_is_looked_for_only_where_it_may_lie() -> None:
    async def run() -> None:
        engine = FarEngine()
        failures = [None, StoreUnavailable("the connection was lost")]

        def fail(_: Any) -> None:
            if failures and (failure := failures.pop(0)):
                raise failure

        async with AsyncStateStore.open(engine) as store:
            saver = StateStoreSaver(store)
            config: Any = thread(checkpoint_ns="")
            for step in range(LENGTH):
                config = await saver.aput(config, _checkpoint("n", step, step), METADATA, {"n": step})
            engine.leave()
            engine.before = fail
            puts = [saver.aput(config, _checkpoint("n", text, LENGTH), METADATA, {"n": LENGTH}) for text in "abc"]
            alone, lost, taken_along = await asyncio.gather(*puts, return_exceptions=True)
            assert isinstance(lost, StoreUnavailable)
            assert engine.records_read < FEW
            for put in (alone, taken_along):
                assert isinstance(put, dict)
                assert await saver.aget_tuple(put) is not None

    asyncio.run(run())


def test_a_thread_is_copied_without_being_read_twice() -> None:
    async def run() -> None:
        engine = FarEngine()
        async with AsyncStateStore.open(engine) as store:
            saver = StateStoreSaver(store)
            for step in range(LENGTH):
                await saver.aput(thread(checkpoint_ns=""), _checkpoint("n", step, step), METADATA, {"n": step})
            engine.leave()
            await store.fork_session("t", new_id="fork")
            forking = engine.records_read
            engine.forget()
            await saver.acopy_thread("t", "copy")
            assert engine.records_read == forking
            assert len([found async for found in saver.alist(thread("copy"))]) == LENGTH

    asyncio.run(run())
