"""What a batch finds absent stays absent until the batch is made: seen on PostgreSQL, which locks rows that are there.

The window is too small for chance, so somebody else holds the batch up in the middle.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from soak.grounds import fresh
from statestore import AsyncStateStore, Session


@asynccontextmanager
async def _holding(target: str, statement: str) -> AsyncGenerator[Any]:
    """Somebody else's transaction, which has done this, and takes it back when the block ends."""
    url, _, options = target.partition("?")
    connection: Any = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(f"SET LOCAL search_path = {dict(o.split('=') for o in options.split('&'))['schema']}")
        await connection.execute(statement)
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


async def _until_blocked(holder: Any, task: asyncio.Task[Any], waiting: int) -> None:
    """Wait until so many wait for somebody who waits for the holder, or for itself, or the task is done."""
    query = """
        WITH RECURSIVE blocked (pid) AS (
            SELECT pg_backend_pid()
            UNION SELECT a.pid FROM pg_stat_activity AS a JOIN blocked AS b ON b.pid = ANY (pg_blocking_pids(a.pid))
        ) SELECT count(*) - 1 FROM blocked
    """
    while not task.done() and await holder.fetchval(query) < waiting:  # noqa: ASYNC110 - it happens at the server
        await asyncio.sleep(0.01)


async def _overtaken(
    target: str, hold: str, slow: Coroutine[Any, Any, Any], quick: Coroutine[Any, Any, Any]
) -> tuple[Any, bool]:
    """Do something that is held up in the middle, and something else meanwhile; whether that was done first."""
    async with _holding(target, hold) as holder:
        first = asyncio.ensure_future(slow)
        await _until_blocked(holder, first, 1)
        assert not first.done()
        second = asyncio.ensure_future(quick)
        await _until_blocked(holder, second, 2)
        is_done = second.done()
    told = await first
    await second
    return told, is_done


def test_nothing_is_put_into_a_category_while_it_is_emptied() -> None:
    async def work(target: str) -> None:
        async with AsyncStateStore.open(target) as one, AsyncStateStore.open(target) as other:
            await one.save_json("c", "x", 1)
            clear, put = one.delete_category("c"), other.save_json("c", "y", 2)
            told, is_first = await _overtaken(target, "SELECT 1 FROM documents FOR UPDATE", clear, put)
            left = await one.list_category("c")
            assert (told, left) == ((2, []) if is_first else (1, ["y"]))

    with fresh("postgres") as ground:
        asyncio.run(work(ground.target))


def test_a_session_that_a_batch_is_to_delete_is_not_created_while_the_batch_is_made() -> None:
    async def batched(store: AsyncStateStore) -> None:
        async with store.batch() as batch:
            batch.delete_session("s")
            batch.save_json("c", "x", 1)

    async def work(target: str) -> None:
        async with AsyncStateStore.open(target) as one, AsyncStateStore.open(target) as other:
            hold = "INSERT INTO documents (category, name, kind, version, body) VALUES ('c', 'x', 'json', 'v', '2')"
            _, is_first = await _overtaken(target, hold, batched(one), other.save_session(Session("ann", "s")))
            assert await one.session_exists("s") is not is_first

    with fresh("postgres") as ground:
        asyncio.run(work(ground.target))
