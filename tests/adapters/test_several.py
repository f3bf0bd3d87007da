"""Doing the same for several items: in order, a few at a time, and nothing is left under way when one fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapters.far import FarEngine
from statestore import AsyncStateStore, StateStore
from statestore.adapters.access import Access
from statestore.adapters.several import AT_ONCE, for_each

MANY = 3 * AT_ONCE


async def asked_for(store: AsyncStateStore, number: int) -> int:
    await store.session_exists(str(number))
    return number


async def all_of(store: AsyncStateStore) -> list[int]:
    return await for_each(store, range(MANY), lambda number: asked_for(store, number))


def test_in_a_loop_a_few_wait_together_and_come_in_order() -> None:
    async def scene() -> None:
        engine = FarEngine()
        async with AsyncStateStore.open(engine) as store:
            engine.leave()
            assert await all_of(store) == list(range(MANY))
            assert engine.asked["read_session"] == MANY
            assert engine.most_at_once == AT_ONCE
            assert engine.round_trips == 3

    asyncio.run(scene())


def test_in_plain_code_threads_wait_together() -> None:
    engine = FarEngine()
    with StateStore.open(engine) as store:
        engine.leave()
        assert Access(store, opens="plain").call(all_of) == list(range(MANY))
        assert engine.asked["read_session"] == MANY
        assert 2 <= engine.most_at_once <= AT_ONCE
        assert engine.round_trips <= MANY // 2


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_in_plain_code_on_this_machine_one_follows_the_other(kind: str, tmp_path: Path) -> None:
    under_way, most = 0, 0

    async def look(store: AsyncStateStore, number: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asked_for(store, number)
        under_way -= 1
        return number

    with StateStore.open("memory:" if kind == "memory" else tmp_path / "state.db") as store:
        found = Access(store, opens="plain").call(
            lambda under: for_each(under, range(MANY), lambda number: look(under, number))
        )
    assert (found, most) == (list(range(MANY)), 1)


@pytest.mark.parametrize("face", ["async", "plain"])
def test_if_one_fails_the_others_are_over_and_no_more_are_begun(face: str) -> None:
    engine = FarEngine()
    ended: set[int] = set()

    async def look(store: AsyncStateStore, number: int) -> None:
        await asked_for(store, number)
        ended.add(number)
        if number == 1:
            raise LookupError("the second")

    async def work(store: AsyncStateStore) -> None:
        engine.leave()
        await for_each(store, range(MANY), lambda number: look(store, number))

    async def scene() -> None:
        async with AsyncStateStore.open(engine) as store:
            await work(store)

    with pytest.raises(LookupError, match="the second"):
        if face == "async":
            asyncio.run(scene())
        else:
            with StateStore.open(engine) as store:
                Access(store, opens="plain").call(work)
    assert engine.asked["read_session"] == len(ended) < MANY


def test_who_is_cancelled_leaves_nothing_under_way() -> None:
    async def scene() -> None:
        engine = FarEngine()
        async with AsyncStateStore.open(engine) as store:
            engine.leave()
            task = asyncio.create_task(all_of(store))
            for _ in range(3):  # it begins, its tasks begin, they wait
                await asyncio.sleep(0)
            assert engine.most_at_once == AT_ONCE
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert engine.asked["read_session"] == AT_ONCE
            assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scene())
