"""The checkpoint storage of the Agent Framework: first the framework's own two, then ours."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import (
    Executor,
    Message,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowMessage,
    handler,
)

from adapters.agent_framework.conftest import Scene
from adapters.agent_framework.writers import write_checkpoints
from adapters.contests import WRITES, two_processes
from statestore import AsyncStateStore
from statestore.adapters.agent_framework import StateStoreCheckpointStorage
from statestore.store.beneath import engine_of


def checkpoint(number: int, workflow: str = "ferry", **more: Any) -> WorkflowCheckpoint:
    fields: Any = {
        "checkpoint_id": f"c{number}",
        "timestamp": f"2026-05-01T09:00:{number:02}.500000+00:00",
        "iteration_count": number,
        "state": {"count": number, "when": datetime(2026, 5, 1, tzinfo=UTC), "raw": b"\x00\xff", "pair": (1, 2)},
        "messages": {"a": [WorkflowMessage(Message("user", ["Hi"]), "a", "b")]},
    }
    return WorkflowCheckpoint(workflow, "hash", **(fields | more))


def told(one: WorkflowCheckpoint) -> Any:
    return {**one.to_dict(), "messages": [message.data.to_dict() for message in one.messages["a"]]}


def test_a_checkpoint_comes_back_as_it_was(checkpoints: Scene) -> None:
    async def scene(storage: Any) -> None:
        stored = checkpoint(1)
        assert await storage.save(stored) == "c1"
        stored.state["count"] = 99
        found = await storage.load("c1")
        assert told(found) == told(checkpoint(1))
        with pytest.raises(WorkflowCheckpointException, match="No checkpoint found with ID nothing"):
            await storage.load("nothing")

    checkpoints.run(scene)


def test_checkpoints_are_listed_by_workflow(checkpoints: Scene) -> None:
    async def scene(storage: Any) -> None:
        for number in (1, 2, 3):
            await storage.save(checkpoint(number))
        await storage.save(checkpoint(9, "other"))
        assert sorted(await storage.list_checkpoint_ids(workflow_name="ferry")) == ["c1", "c2", "c3"]
        found = await storage.list_checkpoints(workflow_name="ferry")
        assert sorted(one.iteration_count for one in found) == [1, 2, 3]
        assert await storage.list_checkpoints(workflow_name="nothing") == []
        assert await storage.list_checkpoint_ids(workflow_name="nothing") == []

    checkpoints.run(scene)


def test_the_latest_is_the_latest_by_its_moment(checkpoints: Scene) -> None:
    async def scene(storage: Any) -> None:
        assert await storage.get_latest(workflow_name="ferry") is None
        for number in (2, 3, 1):
            await storage.save(checkpoint(number))
        assert (await storage.get_latest(workflow_name="ferry")).checkpoint_id == "c3"
        await storage.save(checkpoint(4, timestamp="2026-05-01T11:00:02+02:00"))  # before the third, elsewhere
        assert (await storage.get_latest(workflow_name="ferry")).checkpoint_id == "c3"

    checkpoints.run(scene)


def test_a_checkpoint_replaces_the_one_with_its_id(checkpoints: Scene) -> None:
    async def scene(storage: Any) -> None:
        await storage.save(checkpoint(1))
        await storage.save(checkpoint(1, timestamp="2026-05-02T09:00:00+00:00", iteration_count=7))
        assert [one.iteration_count for one in await storage.list_checkpoints(workflow_name="ferry")] == [7]
        await storage.save(checkpoint(1, "other"))
        assert await storage.list_checkpoint_ids(workflow_name="ferry") == []
        assert (await storage.load("c1")).workflow_name == "other"

    checkpoints.run(scene)


def test_what_is_deleted_is_gone(checkpoints: Scene) -> None:
    async def scene(storage: Any) -> None:
        await storage.save(checkpoint(1))
        await storage.save(checkpoint(2))
        assert await storage.delete("c1") is True
        assert await storage.delete("c1") is False
        assert await storage.list_checkpoint_ids(workflow_name="ferry") == ["c2"]
        with pytest.raises(WorkflowCheckpointException):
            await storage.load("c1")

    checkpoints.run(scene)


@pytest.mark.parametrize("odd", ["a b", "naïve 東京", "x" * 100, "a%2Fb"])
def test_any_text_is_an_id_and_a_workflow(checkpoints: Scene, odd: str) -> None:
    async def scene(storage: Any) -> None:
        await storage.save(checkpoint(1, odd, checkpoint_id=odd))
        assert (await storage.load(odd)).workflow_name == odd
        assert await storage.list_checkpoint_ids(workflow_name=odd) == [odd]

    checkpoints.run(scene)


class Counter(Executor):
    """Counts to three, one step at a time."""

    def __init__(self) -> None:
        super().__init__("counter")

    @handler
    async def count(self, number: int, context: WorkflowContext[int, int]) -> None:
        if number >= 3:
            await context.yield_output(number)
        else:
            await context.send_message(number + 1)


def test_a_workflow_goes_on_from_a_checkpoint(checkpoints: Scene) -> None:
    def workflow(storage: Any) -> Any:
        counter = Counter()
        return (
            WorkflowBuilder(start_executor=counter, checkpoint_storage=storage, name="count", output_from="all")
            .add_edge(counter, counter)
            .build()
        )

    async def scene(storage: Any) -> None:
        first = await workflow(storage).run(0)
        assert first.get_outputs() == [3]
        found = sorted(await storage.list_checkpoints(workflow_name="count"), key=lambda one: one.timestamp)
        assert len(found) >= 3
        again = await workflow(storage).run(checkpoint_id=found[1].checkpoint_id)
        assert again.get_outputs() == [3]

    checkpoints.run(scene)


# -- What ours promises beyond the contract.


@pytest.mark.parametrize("odd", ["a/b", "..", "x" * 300])
def test_ids_that_are_no_file_names_are_ids(sqlite_url: str, odd: str) -> None:
    async def scene() -> None:
        async with StateStoreCheckpointStorage(sqlite_url) as storage:
            await storage.save(checkpoint(1, odd, checkpoint_id=odd))
            assert await storage.list_checkpoint_ids(workflow_name=odd) == [odd]
            assert await storage.delete(odd)
            assert await storage.list_checkpoint_ids(workflow_name=odd) == []

    asyncio.run(scene())


def test_saves_of_one_id_at_once_leave_one_checkpoint_which_can_be_deleted(store_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(store_url) as store:
            storages = [StateStoreCheckpointStorage(store) for _ in range(5)]
            await asyncio.gather(
                *(one.save(checkpoint(n, checkpoint_id="c", iteration_count=n)) for n, one in enumerate(storages))
            )
            (left,) = await storages[0].list_checkpoints(workflow_name="ferry")
            assert told(left) == told(await storages[0].load("c"))
            assert await storages[0].delete("c") is True
            assert await storages[0].list_checkpoint_ids(workflow_name="ferry") == []

    asyncio.run(scene())


def test_a_save_that_another_one_comes_before_replaces_what_that_one_stored(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            storage, look = StateStoreCheckpointStorage(store), store.get_document
            others = [checkpoint(2, checkpoint_id="c"), checkpoint(3, checkpoint_id="c")]

            async def look_and_be_slow(category: str, name: str, *, kind: Any = None) -> Any:
                found = await look(category, name, kind=kind)
                if others:
                    await storage.save(others.pop())
                return found

            monkeypatch.setattr(store, "get_document", look_and_be_slow)
            await storage.save(checkpoint(1, checkpoint_id="c"))
            assert [c.iteration_count for c in await storage.list_checkpoints(workflow_name="ferry")] == [1]
            others.append(checkpoint(4, checkpoint_id="c"))
            assert await storage.delete("c") is True
            assert await storage.list_checkpoints(workflow_name="ferry") == []

    asyncio.run(scene())


def test_a_checkpoint_is_deleted_where_a_store_changes_one_thing_at_a_time(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            storage = StateStoreCheckpointStorage(store)
            await storage.save(checkpoint(1))
            monkeypatch.setattr(engine_of(store), "atomic_scope", "item")
            assert [await storage.delete("c1"), await storage.delete("c1")] == [True, False]
            assert await storage.list_checkpoint_ids(workflow_name="ferry") == []

    asyncio.run(scene())


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_checkpoints, store_url)

    async def scene() -> list[str]:
        async with StateStoreCheckpointStorage(store_url) as storage:
            return await storage.list_checkpoint_ids(workflow_name="contest")

    assert sorted(asyncio.run(scene())) == sorted(f"{name}-{number}" for name in "ab" for number in range(WRITES))


class Unknown:
    """A type that nobody allowed."""


def test_a_checkpoint_that_cannot_be_read_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            storage = StateStoreCheckpointStorage(store)
            await storage.save(checkpoint(1))
            await storage.save(checkpoint(2, state={"x": Unknown()}))
            (category, *_) = await store.list_categories("agent-framework/checkpoints")
            await store.save_json(category, "20990101T000000.000000 c3", {"torn": True})
            with caplog.at_level(logging.WARNING, "statestore"):
                latest = await storage.get_latest(workflow_name="ferry")
                assert latest is not None
                assert latest.checkpoint_id == "c1"
                assert len(await storage.list_checkpoints(workflow_name="ferry")) == 1
            assert "cannot be read, and is left out" in caplog.text
            with pytest.raises(WorkflowCheckpointException):
                await storage.load("c2")
            allowed = StateStoreCheckpointStorage(store, allowed_checkpoint_types=[f"{__name__}:Unknown"])
            assert isinstance((await allowed.load("c2")).state["x"], Unknown)

    asyncio.run(scene())
