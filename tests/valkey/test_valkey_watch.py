"""Watching a server: what is kept, and what is not any more."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest
import redis

from servers.valkey import ValkeyServer, shared_url
from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.engines.valkey import ValkeyEngine
from statestore.engines.valkey.url import parse
from statestore.errors import CursorExpired, NotSupported


def test_a_cursor_older_than_what_is_kept_has_expired(url: str) -> None:
    async def run() -> None:
        engine = ValkeyEngine(parse("valkey", url.removeprefix("valkey:")), changes_kept=100)
        await engine.open()
        try:
            async with AsyncStateStore.open(url) as store:
                await store.save_session(Session.with_id("alice", "s"))
            start = await engine.change_cursor()
            store = await AsyncStateStore.open(engine)
            for number in range(100):
                await store.append("s", UserMessage(f"m{number}"))
            page = await engine.read_changes(start)
            assert len(page.notices) == 100
            for number in range(300):
                await store.append("s", UserMessage(f"n{number}"))
            with pytest.raises(CursorExpired):
                await engine.read_changes(start)
            assert await engine.read_changes(await engine.change_cursor()) is not None
        finally:
            await engine.close()

    asyncio.run(run())


def test_a_cursor_of_another_store_has_expired(url: str) -> None:
    with StateStore.open(f"{url}x") as other:
        other.save_session(Session.with_id("alice", "s"))
        cursor = other.change_cursor()
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
        with pytest.raises(CursorExpired):
            next(iter(store.watch(after=cursor)))


def test_a_cluster_cannot_be_watched_and_says_so(cluster_url: str) -> None:
    with StateStore.open(cluster_url) as store, pytest.raises(NotSupported):
        store.watch("s")


@pytest.mark.parametrize("commits", [1, 20, 500])
def test_who_is_told_of_many_records_is_sent_each_of_them_once(own_server: ValkeyServer, commits: int) -> None:
    """However many pages it takes, and nothing of the session's metadata and keys."""
    with StateStore.open(own_server.url) as store:
        session = Session.with_id("alice", "s")
        for number in range(100):
            session.set_metadata(f"name {number}", "x" * 100)
        store.save_session(session)
        start = store.change_cursor()
        texts = [f"{number} {'x' * 300}" for number in range(2_000)]
        length = len(texts) // commits
        for first in range(0, len(texts), length):
            some = texts[first : first + length]
            store.append("s", *map(UserMessage, some), keys=some)
        before = own_server.client.info("stats")["total_net_output_bytes"]  # type: ignore[index]
        told = [notice.seq for notice in islice(store.watch("s", after=start), len(texts))]
        assert told == list(range(1, len(texts) + 1))
        sent = own_server.client.info("stats")["total_net_output_bytes"] - before  # type: ignore[index]
        assert sent < 2 * sum(map(len, texts))


@pytest.mark.parametrize("limit", [1, 3, 7, 500, 10**9])
def test_a_commit_of_many_records_is_told_whole_in_pages_of_any_size(url: str, prefix: str, limit: int) -> None:
    """What was removed and what is damaged leaves gaps, and nothing after them is lost."""
    _, where = url.split(":", 1)

    async def run() -> None:
        async with AsyncStateStore.open(url) as store:
            await store.save_session(Session.with_id("alice", "other"))
            await store.save_session(Session.with_id("alice", "s"))
            start = await store.change_cursor()
            await store.append("other", UserMessage("o"))
            await store.append("s", *(UserMessage(str(number)) for number in range(1, 31)))
            await store.append("s", *(UserMessage(str(number)) for number in range(31, 41)))
            await store.rewind_session("s", to=25)
            await store.append("s", *(UserMessage(str(number)) for number in range(41, 51)))
        with redis.Redis.from_url(shared_url().replace("valkey", "redis", 1), protocol=2) as client:
            for seq in (1, 7, 8, 9):
                client.lset(f"{prefix}:s:{{s}}:r", seq - 1, f"u0x{seq:014}{{}}")
        engine = ValkeyEngine(parse("valkey", where))
        await engine.open()
        try:
            told: list[int] = []
            while (page := await engine.read_changes(start, session_id="s", limit=limit)).cursor != start:
                assert len(page.notices) <= limit + 1
                told += [notice.seq for notice in page.notices if notice.what == "record" and notice.seq is not None]
                start = page.cursor
            assert told == [2, 3, 4, 5, 6, *range(10, 26), *range(41, 51)]
        finally:
            await engine.close()

    asyncio.run(run())
