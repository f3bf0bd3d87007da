"""Poolers between stores and a server: one that knows none of our settings can be used, one that drops them is told."""

from __future__ import annotations

import asyncio

import pytest
from postgres_hooks import run_in
from postgres_proxy import Hook, Link, proxy_to

from servers.postgres import PostgresServer
from statestore import AsyncStateStore, StoreUnavailable, UserMessage


def _refuse_settings(link: Link, data: bytes) -> bytes:
    """What a pooler does that is asked for settings it does not know."""
    if b"\0search_path\0" in data:
        link.refuse("08P01", "unsupported startup parameter: search_path")
        return b""
    return data


def _drop_settings(_: Link, data: bytes) -> bytes:
    """What a pooler does that was told to ignore what it does not know."""
    if b"\0search_path\0" not in data:
        return data
    words = data[8:].split(b"\0")
    kept = [
        pair
        for pair in zip(words[::2], words[1::2], strict=False)
        if pair[0] in (b"user", b"database", b"client_encoding")
    ]
    rest = data[4:8] + b"".join(name + b"\0" + value + b"\0" for name, value in kept) + b"\0"
    return (len(rest) + 4).to_bytes(4, "big") + rest


async def _use(server: PostgresServer, pooler: Hook, schema: str) -> None:
    async with (
        proxy_to(server.port, pooler) as port,
        AsyncStateStore.open(f"postgresql://keeper@127.0.0.1:{port}/postgres?schema={schema}&timeout=20") as store,
    ):
        await store.get_or_create_session("alice", "s")
        await asyncio.gather(*(store.append("s", UserMessage("one")) for _ in range(20)))
        assert len(await store.timeline("s")) == 20


def test_a_pooler_that_refuses_our_settings_is_told_them_later(own_server: PostgresServer) -> None:
    asyncio.run(_use(own_server, _refuse_settings, "pooled"))
    assert run_in(f"{own_server.url()}?schema=pooled", "SELECT count(*) FROM pooled.records") == [(20,)]


def test_a_pooler_that_drops_our_settings_is_refused_and_nothing_is_made(own_server: PostgresServer) -> None:
    with pytest.raises(StoreUnavailable, match="ignore_startup_parameters"):
        asyncio.run(_use(own_server, _drop_settings, "dropped"))
    assert own_server.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'dropped'") == []
