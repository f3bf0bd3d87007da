"""Fail-over: the primary dies, the standby takes over, and the store goes on by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from servers.postgres import PostgresServer, running_server
from statestore import AsyncStateStore, StateStore, UserMessage

WRITERS = 8


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    """A primary and a standby without which nothing is acknowledged."""
    with running_server() as primary:
        standby = PostgresServer()
        try:
            standby.copy_of(primary)
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()")
            yield primary, standby
        finally:
            standby.destroy()


def test_eight_writers_do_not_notice_that_the_primary_is_killed(pair: tuple[PostgresServer, PostgresServer]) -> None:
    primary, standby = pair
    hosts = f"{standby.address},{primary.address}"
    url = f"postgresql://keeper@{hosts}/postgres?timeout=60"
    acknowledged: list[tuple[int, str]] = []

    async def write(store: AsyncStateStore, writer: int, stop: asyncio.Event) -> int:
        turn = 0
        while not stop.is_set():
            (seq,) = await store.append("shared", UserMessage(f"{writer}:{turn}"))
            acknowledged.append((seq, f"{writer}:{turn}"))
            turn += 1
        return turn

    async def more(count: int) -> None:
        target = len(acknowledged) + count
        while len(acknowledged) < target:  # noqa: ASYNC110 - the writers are at work
            await asyncio.sleep(0.01)

    async def work() -> list[int]:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "shared")
            stop = asyncio.Event()
            writers = [asyncio.create_task(write(store, number, stop)) for number in range(WRITERS)]
            await more(200)
            await asyncio.to_thread(primary.kill)
            await asyncio.to_thread(standby.promote)
            await more(200)
            stop.set()
            return await asyncio.gather(*writers)

    turns = asyncio.run(work())
    with StateStore.open(url) as store:
        found = [(entry.seq, entry.record.content) for entry in store.timeline("shared")]  # type: ignore[union-attr]
        assert sorted(word for _, word in found) == sorted(f"{w}:{t}" for w, n in enumerate(turns) for t in range(n))
        assert sorted(found) == sorted(acknowledged)
        assert store.check() == []
