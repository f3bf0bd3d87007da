"""A server that takes no more connections, or takes long to: its connections are shared, and calls end in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from servers.postgres import PASSWORD, PostgresServer
from statestore import AsyncStateStore
from statestore.engines.postgres import pool as pooling
from statestore.engines.postgres.persisting import Attempt, Persistence
from statestore.engines.postgres.pool import Pool


class _Connection:
    """As much of a connection as a pool needs."""

    def is_closed(self) -> bool:
        return False

    def is_in_transaction(self) -> bool:
        return False

    async def close(self) -> None:
        pass

    def terminate(self) -> None:
        pass


class _Server:
    """Gives a few connections, and counts how often it is asked for more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._given = 0
        self.refusals = 0

    async def connect(self, _seconds: float) -> Any:
        if self._given == self._most:
            self.refusals += 1
            raise asyncpg.TooManyConnectionsError("sorry, too many clients already")
        self._given += 1
        return _Connection()


async def _steps() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def _slow_clock() -> Callable[[float], None]:
    """What lets the running loop's clock go on by so many seconds."""
    loop = asyncio.get_running_loop()
    really, ahead = loop.time, 0.0

    def go_on(seconds: float) -> None:
        nonlocal ahead
        ahead += seconds

    loop.time = lambda: really() + ahead  # type: ignore[method-assign]
    return go_on


def test_those_who_find_a_server_full_are_given_in_turn_what_another_needs_no_more() -> None:
    async def work() -> None:
        server = _Server(1)
        pool = Pool(server.connect, size=5)
        await pool.open()
        turns: list[int] = []

        async def use(number: int) -> None:
            async with pool.connection(60):
                turns.append(number)

        async with pool.connection(60):
            waiting = [asyncio.create_task(use(number)) for number in range(3)]
            await _steps()
            assert turns == []
        async with asyncio.timeout(10):
            await use(3)  # comes when the connection is free, and yet does not come before the others
            await asyncio.gather(*waiting)
        assert turns == [0, 1, 2, 3]
        assert server.refusals <= 3
        await pool.close(1)

    asyncio.run(work())


def test_one_that_is_called_off_while_it_is_given_a_connection_leaves_it_to_the_next() -> None:
    async def work() -> None:
        pool = Pool(_Server(1).connect, size=5)
        await pool.open()

        async def use() -> None:
            async with pool.connection(60):
                pass

        async with pool.connection(60):
            first, second = asyncio.create_task(use()), asyncio.create_task(use())
            await _steps()
        first.cancel()
        async with asyncio.timeout(10):
            await asyncio.wait([first])
            await second
            await use()
        assert first.cancelled()
        await pool.close(1)

    asyncio.run(work())


def test_a_full_server_is_asked_again_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "FULL", 1000.0)

    async def work() -> None:
        server = _Server(1)
        pool = Pool(server.connect, size=5)
        await pool.open()
        go_on = _slow_clock()

        async def use() -> None:
            async with pool.connection(1_000_000):
                pass

        async with pool.connection(60):
            waiting = [asyncio.create_task(use())]
            await _steps()
            go_on(900.0)
            waiting += [asyncio.create_task(use()) for _ in range(2)]
            await _steps()
            assert server.refusals == 1
            go_on(101.0)
            async with asyncio.timeout(10):
                while server.refusals == 1:  # noqa: ASYNC110 - their time is over, and they ask
                    await asyncio.sleep(0)
        await asyncio.gather(*waiting)
        await pool.close(1)

    asyncio.run(work())


@pytest.mark.parametrize("count", [1, 2])
def test_connections_are_kept_when_there_may_be_no_more(count: int) -> None:
    async def work() -> None:
        server = _Server(count)
        pool = Pool(server.connect, size=5)
        await pool.open()
        async with AsyncExitStack() as stack:
            for _ in range(count):
                await stack.enter_async_context(pool.connection(60))

        async def fail_at_first(_: object, attempt: Attempt) -> int:
            if attempt.number == 1:
                raise asyncpg.TooManyConnectionsError("sorry, too many clients already")
            return attempt.number

        assert await Persistence(pool, url="here", timeout=5).run(fail_at_first) == 2
        assert not server.refusals
        await pool.close(1)

    asyncio.run(work())


def test_a_store_with_more_tasks_than_its_role_may_have_connections_serves_them_all(own_server: PostgresServer) -> None:
    own_server.sql(
        f"CREATE ROLE few LOGIN CONNECTION LIMIT 2 PASSWORD '{PASSWORD}'", "GRANT CREATE ON DATABASE postgres TO few"
    )

    async def work() -> None:
        async with AsyncStateStore.open(f"{own_server.url(role='few')}?schema=few&timeout=20") as store:
            await store.get_or_create_session("alice", "s")

            async def read() -> None:
                for _ in range(20):
                    assert await store.load_session("s") is not None

            await asyncio.gather(*(read() for _ in range(20)))

    asyncio.run(work())


@pytest.mark.parametrize("seconds", [0.5, 5.0, 9.0])
def test_an_attempt_ends_with_its_call_however_long_it_took_to_connect(seconds: float) -> None:
    async def work() -> None:
        go_on = _slow_clock()

        async def connect_slowly(_seconds: float) -> Any:
            go_on(seconds)
            return _Connection()

        pool = Pool(connect_slowly, size=1)
        await pool.open()
        persistence = Persistence(pool, url="here", timeout=10)
        end = persistence.end_of_call()

        async def ends(_: object, attempt: Attempt) -> float | None:
            return attempt._limit.when()  # pyright: ignore[reportPrivateUsage]

        limit = await persistence.run(ends, end=end)
        assert limit is not None
        assert limit < end
        await pool.close(1)

    asyncio.run(work())


def test_who_waited_for_another_has_less_time_to_connect() -> None:
    async def work() -> None:
        go_on = _slow_clock()
        given: list[float] = []

        async def connect(seconds: float) -> Any:
            given.append(seconds)
            return _Connection()

        pool = Pool(connect, size=1)
        await pool.open()

        async def use() -> None:
            async with pool.connection(10):
                pass

        with pytest.raises(ConnectionResetError):
            async with pool.connection(10):
                waiting = asyncio.create_task(use())
                await _steps()
                go_on(6)
                raise ConnectionResetError
        await waiting
        assert 0 < given[1] < 5
        await pool.close(1)

    asyncio.run(work())
