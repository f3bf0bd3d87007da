"""Watching a server: what is kept, and what is not any more."""

from __future__ import annotations

import asyncio

import pytest

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
