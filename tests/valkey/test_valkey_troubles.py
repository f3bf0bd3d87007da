"""Servers that restart, forget their scripts, or cut connections, while many tasks write: everything exactly once."""

from __future__ import annotations

import asyncio

import pytest
from valkey_load import loaded
from valkey_proxy import losing_proxy

from servers.valkey import ValkeyServer
from statestore import AsyncStateStore, Session, UserMessage


def test_a_server_that_is_killed_has_all_that_it_acknowledged(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with loaded(own_server.url) as (load, store):

            async def restart() -> None:
                for _ in range(3):
                    await asyncio.to_thread(own_server.restart)
                    await load.progress()

            await load.run(restart)
            await load.assert_exactly_once(store)
            assert not load.unknown, "a restart is waited for"
            assert await store.check() == []

    asyncio.run(run())


def test_forgotten_scripts_are_sent_again(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with loaded(own_server.url) as (load, store):

            async def forget() -> None:
                for _ in range(20):
                    await asyncio.to_thread(own_server.client.execute_command, "SCRIPT", "FLUSH")
                    await load.progress(20)

            await load.run(forget)
            await load.assert_exactly_once(store)
            assert not load.unknown

    asyncio.run(run())


def test_killed_connections_lose_nothing_and_double_nothing(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with loaded(own_server.url) as (load, store):

            async def kill() -> None:
                for _ in range(30):
                    await asyncio.to_thread(own_server.client.execute_command, "CLIENT", "KILL", "TYPE", "normal")
                    await load.progress(10)

            await load.run(kill)
            await load.assert_exactly_once(store)
            assert not load.unknown

    asyncio.run(run())


@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_answer_makes_nothing_twice(own_server: ValkeyServer, times: int) -> None:
    async def run() -> None:
        async with (
            losing_proxy(own_server.port, b"only once", times=times) as proxy,
            AsyncStateStore.open(f"valkey://127.0.0.1:{proxy.port}") as store,
        ):
            await store.save_session(Session.with_id("alice", "s"))
            assert await store.append("s", UserMessage("only once")) == [1]
            assert await store.append("s", UserMessage("after it")) == [2]
            assert proxy.left == 0
            session = await store.load_session("s")
            assert session is not None
            assert [message.content for message in session.user_messages] == ["only once", "after it"]

    asyncio.run(run())


def test_outcomes_are_not_kept_once_they_have_arrived(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with loaded(own_server.url) as (load, _):
            await load.run(load.progress)
            assert load.acknowledged.total() >= 100
        kept = list(own_server.client.scan_iter(match="*:t:*", count=1000))
        assert len(kept) <= 8

    asyncio.run(run())


def test_an_outcome_is_kept_for_an_hour_when_it_may_be_asked_for(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(own_server.url) as store:
            await store.save_session(Session.with_id("alice", "s"))

    asyncio.run(run())
    (token,) = own_server.client.scan_iter(match="*:t:*", count=1000)
    assert 3_500_000 < own_server.client.pttl(token) <= 3_600_000  # type: ignore[operator]
