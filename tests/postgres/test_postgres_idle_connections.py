"""Connections that nobody uses any more are closed, and those that somebody does are kept."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack
from typing import Any
from weakref import ref

import pytest

from servers.postgres import PostgresServer
from statestore import AsyncStateStore
from statestore.engines.postgres import pool as pooling
from statestore.engines.postgres.pool import Pool


class _Connection:
    """As much of a connection as a pool needs."""

    def __init__(self) -> None:
        self.was_told_good_bye = False

    def is_closed(self) -> bool:
        return self.was_told_good_bye

    def is_in_transaction(self) -> bool:
        return False

    async def close(self) -> None:
        self.was_told_good_bye = True

    def terminate(self) -> None:
        self.was_told_good_bye = True


async def _pool(made: list[_Connection]) -> Pool:
    async def connect(_seconds: float) -> Any:
        made.append(_Connection())
        return made[-1]

    pool = Pool(connect, size=10)
    await pool.open()
    return pool


async def _use(pool: Pool, at_once: int) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(at_once):
            await stack.enter_async_context(pool.connection(1))


async def _look(pool: Pool) -> None:
    """What happens now and then."""
    pool._let_go_of_untouched()  # pyright: ignore[reportPrivateUsage]
    for _ in range(5):
        await asyncio.sleep(0)


def test_as_many_are_kept_as_were_in_use_at_once_since_the_last_look() -> None:
    async def work() -> None:
        made: list[_Connection] = []
        pool = await _pool(made)
        still_open = []
        for at_once in (5, 3, 1, 2, 0, 1):
            await _use(pool, at_once)
            await _look(pool)
            still_open.append(sum(not connection.is_closed() for connection in made))
        assert still_open == [5, 3, 1, 2, 0, 1]
        assert len(made) == 5 + 1 + 1
        await pool.close(1)
        assert all(connection.is_closed() for connection in made)

    asyncio.run(work())


def test_one_that_is_in_use_all_the_time_is_kept() -> None:
    async def work() -> None:
        made: list[_Connection] = []
        pool = await _pool(made)
        async with pool.connection(1) as connection:
            for _ in range(3):
                await _look(pool)
            assert not connection.is_closed()
        await _look(pool)
        assert not made[0].is_closed()
        await pool.close(1)

    asyncio.run(work())


def test_those_that_were_made_after_all_were_dropped_are_new() -> None:
    async def work() -> None:
        made: list[_Connection] = []
        pool = await _pool(made)
        await _use(pool, 5)
        await _look(pool)
        pool.drop_idle()
        await _use(pool, 5)
        await _look(pool)
        assert [connection.is_closed() for connection in made] == [True] * 5 + [False] * 5
        await pool.close(1)

    asyncio.run(work())


def test_a_pool_that_nobody_holds_is_not_kept_until_the_next_look() -> None:
    async def work() -> None:
        made: list[_Connection] = []
        pool = await _pool(made)
        await _use(pool, 2)
        gone = ref(pool)
        del pool
        gc.collect()
        assert gone() is None

    asyncio.run(work())


def test_a_store_that_was_busy_once_has_no_connections_when_it_rests(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connections() -> int:
        rows = await asyncio.to_thread(
            own_server.sql, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'statestore'"
        )
        return len(rows)

    async def work() -> None:
        async with AsyncStateStore.open(f"{own_server.url()}?schema=resting") as store:
            await store.get_or_create_session("alice", "s")
            for _ in range(2):
                await asyncio.gather(*(store.load_session("s") for _ in range(30)))
                async with asyncio.timeout(60):
                    while await connections():  # noqa: ASYNC110 - what is waited for happens at the server
                        await asyncio.sleep(0.01)
            assert await store.load_session("s") is not None

    monkeypatch.setattr(pooling, "LONGEST_IDLE", 0.05)
    asyncio.run(work())
