"""The way to a store: lent or opened from a URL, in plain code and in loops, closed by whoever opened it."""

from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from statestore import (
    AsyncStateStore,
    InvalidValue,
    NotSupported,
    StateStore,
    StateStoreError,
    StoreClosed,
    UserMessage,
)
from statestore.adapters.access import Access


async def count(store: AsyncStateStore) -> int:
    return await store.count_sessions()


async def create(store: AsyncStateStore) -> str:
    return (await store.get_or_create_session("alice")).id


async def thread(store: AsyncStateStore) -> int:
    return threading.get_ident()


def test_a_url_is_opened_once_however_many_ask(sqlite_url: str) -> None:
    async def scene() -> None:
        access = Access(sqlite_url, opens="async")
        await asyncio.gather(*(access.run(create) for _ in range(20)))
        assert await access.run(count) == 20
        stores = {id(await access.run(_itself)) for _ in range(3)}
        assert len(stores) == 1
        await access.aclose()
        await access.aclose()
        with pytest.raises(StoreClosed):
            await access.run(count)

    asyncio.run(scene())


async def _itself(store: AsyncStateStore) -> AsyncStateStore:
    return store


def test_nothing_is_opened_before_it_is_used(tmp_path: pytest.TempPathFactory) -> None:
    for opens in ("async", "plain"):
        Access(f"sqlite:{tmp_path}/x.db", opens=opens).close()
    assert not list(tmp_path.iterdir())  # pyright: ignore[reportAttributeAccessIssue]


def test_a_store_that_cannot_be_opened_is_tried_again(sqlite_url: str, tmp_path: pytest.TempPathFactory) -> None:
    url = sqlite_url.replace("state.db", "later/state.db")

    async def scene() -> None:
        access = Access(url, opens="async")
        blocker = tmp_path / "later"  # pyright: ignore[reportOperatorIssue]
        blocker.write_text("in the way")
        with pytest.raises(StateStoreError):
            await access.run(count)
        blocker.unlink()
        blocker.mkdir()
        assert await access.run(count) == 0
        await access.aclose()

    asyncio.run(scene())


def test_a_lent_store_is_not_closed(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        access = Access(store, opens="plain")
        access.call(create)
        access.close()
        assert access.call(count) == 1


def test_a_plain_store_does_not_block_a_loop() -> None:
    with StateStore.open("memory:") as store:
        access = Access(store, opens="plain")
        assert access.call(thread) == threading.get_ident()
        assert asyncio.run(access.run(thread)) != threading.get_ident()


def test_an_asynchronous_store_is_reached_from_other_threads() -> None:
    async def scene() -> None:
        async with AsyncStateStore.open("memory:") as store:
            access = Access(store, opens="plain")
            assert await asyncio.to_thread(access.call, create)
            assert await asyncio.to_thread(access.call, count) == 1
            with pytest.raises(NotSupported, match="asynchronous twin"):
                access.call(count)

    asyncio.run(scene())


def test_what_is_no_store_is_refused_at_once() -> None:
    with pytest.raises(InvalidValue, match="not dict"):
        Access({}, opens="async")  # pyright: ignore[reportArgumentType]


def test_a_plain_store_from_a_url_serves_loops_too(sqlite_url: str) -> None:
    access = Access(sqlite_url, opens="plain")
    session_id = asyncio.run(access.run(create))

    async def add(store: AsyncStateStore) -> list[int]:
        return await store.append(session_id, UserMessage("hello"))

    assert access.call(add) == [1]
    access.close()
    with pytest.raises(StoreClosed):
        access.call(count)


def test_what_was_opened_in_a_loop_that_is_over_is_opened_anew(store_url: str) -> None:
    access = Access(store_url, opens="async")

    async def create_some() -> list[str]:
        return await asyncio.gather(*(access.run(create) for _ in range(5)))

    created = [session_id for _ in range(3) for session_id in asyncio.run(create_some())]
    assert len(set(created)) == 15
    assert asyncio.run(access.run(count)) == 15
    asyncio.run(access.aclose())
    with pytest.raises(StoreClosed):
        asyncio.run(access.run(count))


@pytest.mark.parametrize("engine", ["sqlite", "memory"])
def test_a_store_that_needs_no_loop_of_its_own_is_kept_and_closed(sqlite_url: str, engine: str) -> None:
    access = Access(sqlite_url if engine == "sqlite" else "memory:", opens="async")
    first, second = (asyncio.run(access.run(_itself)) for _ in range(2))
    assert first is second
    asyncio.run(access.aclose())
    with pytest.raises(StoreClosed):
        asyncio.run(first.count_sessions())


@pytest.mark.parametrize("is_plain", [True, False])
def test_what_was_opened_in_a_loop_that_is_over_can_be_closed(store_url: str, is_plain: bool) -> None:
    access = Access(store_url, opens="async")
    asyncio.run(access.run(create))
    if is_plain:
        access.close()
    else:
        asyncio.run(access.aclose())
    gc.collect()
    with pytest.raises(StoreClosed):
        asyncio.run(access.run(count))


def test_what_a_thread_has_begun_is_over_when_its_cancellation_is_felt() -> None:
    with StateStore.open("memory:") as store:
        access = Access(store, opens="plain")
        begun, may_go_on = threading.Event(), threading.Event()

        async def create_late(store: AsyncStateStore) -> str:
            begun.set()
            may_go_on.wait()
            return await create(store)

        async def scene() -> None:
            task = asyncio.ensure_future(access.run(create_late))
            await asyncio.to_thread(begun.wait)
            for _ in range(3):
                task.cancel()
                await asyncio.wait([task], timeout=0)
            may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert store.count_sessions() == 1

        try:
            asyncio.run(scene())
        finally:
            may_go_on.set()
