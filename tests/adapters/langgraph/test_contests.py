"""Many write to one thread at once: nothing is lost, and nothing is stored twice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint

from adapters.contests import WRITES, two_processes
from adapters.langgraph.graphs import thread
from adapters.langgraph.writers import put_checkpoints, remember
from hooked import SlowEngine
from statestore import AsyncStateStore, StateStore, StoreUnavailable
from statestore.adapters.langgraph import StateStoreSaver, StateStoreStore
from statestore.engine import Change, Outcome
from statestore.engines.memory import MemoryEngine


def test_two_processes_keep_every_checkpoint_and_every_write(store_url: str) -> None:
    two_processes(put_checkpoints, store_url)
    with StateStoreSaver(store_url) as saver:
        found = list(saver.list(thread("shared")))
        assert len(found) == 2 * WRITES
        for writer in ("a", "b"):
            own = [one for one in found if one.metadata["writer"] == writer][::-1]  # type: ignore[typeddict-item]
            assert [one.metadata["step"] for one in own] == list(range(WRITES))
            for number, one in enumerate(own):
                said = [message.content for message in one.checkpoint["channel_values"]["messages"]]
                assert said == [f"{writer}:{before}" for before in range(number + 1)]
                assert [value for _, _, value in one.pending_writes or []] == [f"{writer}:{number}"]
    with StateStore.open(store_url) as store:
        (summary,) = store.list_sessions()
        assert (summary.message_count, summary.event_count) == (2 * WRITES, 4 * WRITES)


def test_two_processes_keep_every_item_of_memory(store_url: str) -> None:
    two_processes(remember, store_url)
    with StateStoreStore(store_url) as store:
        found = store.search(("shared",), limit=1000)
        assert {item.key for item in found} == {f"{name}:{number}" for name in "ab" for number in range(WRITES)}
        assert store.list_namespaces() == [("shared",)]


class _LastComeFirstServed:
    """A lock, as unfair as any may be."""

    def __init__(self) -> None:
        self.waiting: list[threading.Event] = []

    def __enter__(self) -> None:
        self.waiting.append(turn := threading.Event())
        assert turn.wait(30)

    def __exit__(self, *_: object) -> None:
        self.serve()

    def serve(self) -> None:
        if self.waiting:
            self.waiting.pop().set()


def test_a_write_that_another_one_takes_along_is_stored_though_that_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    commit, failures = MemoryEngine.commit, [StoreUnavailable("no space left")]

    async def fail_once(self: MemoryEngine, batch: Sequence[Change]) -> list[Outcome]:
        if failures:
            raise failures.pop()
        return await commit(self, batch)

    with StateStore.open("memory:") as store:
        saver = StateStoreSaver(store)
        metadata: Any = {"source": "loop", "step": 1, "parents": {}}
        config = saver.put(thread(checkpoint_ns=""), empty_checkpoint(), metadata, {})
        (known,) = saver._threads.values()
        known._plain_turn = turns = _LastComeFirstServed()  # type: ignore[assignment]
        monkeypatch.setattr(MemoryEngine, "commit", fail_once)
        told: dict[str, Exception | None] = {}

        def write(task: str) -> None:
            try:
                saver.put_writes(config, [("channel", task)], task)
                told[task] = None
            except StoreUnavailable as error:
                told[task] = error

        writers = [threading.Thread(target=write, args=(task,)) for task in ("first", "second")]
        for count, writer in enumerate(writers, 1):
            writer.start()
            while len(turns.waiting) < count:
                time.sleep(0.001)
        turns.serve()
        for writer in writers:
            writer.join()
        found = StateStoreSaver(store).get_tuple(config)
        assert found is not None
        assert [task for task, _, _ in found.pending_writes or []] == ["first"]
        assert told["first"] is None
        assert isinstance(told["second"], StoreUnavailable)


def test_a_checkpoint_that_another_one_took_along_is_stored_once_though_nobody_heard_that_it_was() -> None:
    async def put(saver: StateStoreSaver, text: str) -> Any:
        checkpoint: Any = empty_checkpoint() | {
            "channel_values": {"messages": [HumanMessage(text, id=text)]},
            "channel_versions": {"messages": 1},
        }
        metadata: Any = {"source": "loop", "step": 1, "parents": {}}
        return await saver.aput(thread(checkpoint_ns=""), checkpoint, metadata, {"messages": 1})

    async def contest() -> None:
        engine = SlowEngine(MemoryEngine())

        def lose_the_connection(_: Sequence[Change]) -> None:
            if len(engine.commits) == 2:
                engine.after = None
                raise StoreUnavailable("the connection was lost")

        async with AsyncStateStore.open(engine) as store:  # type: ignore[arg-type]
            saver = StateStoreSaver(store)
            puts = [asyncio.create_task(put(saver, text)) for text in ("alone", "lost", "taken along")]
            await engine.is_asked.wait()
            engine.after = lose_the_connection
            engine.let_go()
            alone, lost, taken = await asyncio.gather(*puts, return_exceptions=True)
            assert isinstance(lost, StoreUnavailable)
            for config in (alone, taken):
                assert await saver.aget_tuple(config) is not None
            session = await store.load_session("t")
            assert session is not None
            assert [message.content for message in session.user_messages] == ["alone", "lost", "taken along"]
            assert [event.kind for event in session.events] == ["checkpoint"] * 3

    asyncio.run(contest())
