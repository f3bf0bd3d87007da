"""Sessions that are too long for one answer: read in pieces, and still as they were at one moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import redis

from servers.valkey import shared_url
from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.engines.valkey import reading, surveying_sessions
from statestore.engines.valkey.pool import Command, ConnectionPool

LENGTH = 700


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for reader in (reading, surveying_sessions):
        monkeypatch.setattr(reader, "PAGE", 50)


@pytest.fixture(params=["url", "cluster_url"])
def long(request: pytest.FixtureRequest) -> str:
    """A store with a long session."""
    url: str = request.getfixturevalue(request.param)
    with StateStore.open(url) as store:
        session = Session.with_id("alice", "long")
        for number in range(LENGTH):
            session.add_user_message(str(number))
        store.save_session(session)
    return url


def test_a_long_session_is_read_whole(long: str) -> None:
    with StateStore.open(long) as store:
        session = store.load_session("long")
        assert session is not None
        assert [message.content for message in session.user_messages] == [str(number) for number in range(LENGTH)]
        entries = store.timeline("long")
        assert [entry.seq for entry in entries] == list(range(1, LENGTH + 1))


def test_a_batch_of_many_records_is_stored_whole(url: str) -> None:
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
        numbers = store.append("s", *(UserMessage(str(number)) for number in range(12_345)))
        assert numbers == list(range(1, 12_346))
        session = store.load_session("s")
        assert session is not None
        assert [message.content for message in session.user_messages] == [str(number) for number in range(12_345)]
        assert store.check() == []


def test_a_session_that_is_rewritten_while_it_is_read_is_read_as_it_was_at_one_moment(long: str) -> None:
    """All messages of a rewrite begin alike, and there are always as many: a mixture would show."""

    async def run() -> None:
        async with AsyncStateStore.open(long) as store, AsyncStateStore.open(long) as other:
            is_over = False

            async def rewrite() -> None:
                nonlocal is_over
                for turn in range(8):
                    await other.rewind_session("long", to=0)
                    await other.append("long", *(UserMessage(f"{turn}") for _ in range(LENGTH)))
                is_over = True

            async def read() -> None:
                while not is_over:
                    session = await store.load_session("long")
                    assert session is not None
                    said = {message.content for message in session.user_messages}
                    assert (len(said), len(session.user_messages)) in ((0, 0), (1, LENGTH), (LENGTH, LENGTH))

            await asyncio.gather(rewrite(), read(), read())

    asyncio.run(run())


def test_a_session_that_is_rewritten_while_it_is_checked_is_sound(long: str) -> None:
    """Its records are those of one moment; a cluster's listings are written a little later."""

    async def run() -> None:
        async with AsyncStateStore.open(long) as store, AsyncStateStore.open(long) as other:
            is_over = False

            async def rewrite() -> None:
                nonlocal is_over
                for turn in range(8):
                    await other.rewind_session("long", to=turn)
                    await other.append("long", *(UserMessage(f"{turn}") for _ in range(LENGTH)))
                is_over = True

            async def check() -> None:
                while not is_over:
                    assert all("listing" in problem.what for problem in await store.check())
                assert await store.check() == []

            await asyncio.gather(rewrite(), check(), check())

    asyncio.run(run())


def test_what_is_wrong_far_behind_is_found(url: str, prefix: str) -> None:
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
        store.append("s", *(UserMessage(str(number)) for number in range(LENGTH)))
        with redis.Redis.from_url(shared_url().replace("valkey", "redis", 1), protocol=2) as client:
            client.lset(f"{prefix}:s:{{s}}:r", LENGTH - 2, f"u{LENGTH - 1:016}\xff".encode("latin-1"))
        assert any(problem.what.startswith(f"record {LENGTH - 1}: it is not a record") for problem in store.check())


@pytest.mark.parametrize("size", [100, 100_000, 3_000_000])
def test_no_answer_is_much_longer_than_a_megabyte_or_a_record(
    url: str, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """While the server writes one, it does nothing else."""
    longest = 0
    exchange = ConnectionPool.exchange

    async def measured(pool: ConnectionPool, commands: Sequence[Command]) -> list[Any]:
        nonlocal longest
        replies = await exchange(pool, commands)
        for reply in replies:
            parts = reply if isinstance(reply, list) else []
            longest = max(longest, sum(len(part) for part in parts if isinstance(part, bytes)))
        return replies

    for reader in (reading, surveying_sessions):
        monkeypatch.setattr(reader, "PAGE", 5_000)
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
        for _ in range(3):
            store.append("s", *(UserMessage("x" * size) for _ in range(max(1, 2_500_000 // size // 3))))
        monkeypatch.setattr(ConnectionPool, "exchange", measured)
        session = store.load_session("s")
        assert session is not None
        assert {len(message.content) for message in session.user_messages} == {size}
        assert store.check() == []
        assert longest < max(1_000_000, size) + 200_000
