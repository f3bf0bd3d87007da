"""The connection on which watchers are told: one that went deaf is replaced, one that nobody needs is let go of."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from postgres_hooks import know_all_writers
from postgres_proxy import Link, proxy_to

from servers.postgres import PostgresServer
from statestore.conformance.changes import appended, created, user
from statestore.engine import Engine, Wakes, Watches
from statestore.engines.postgres import waking
from statestore.engines.postgres.engine import PostgresEngine
from statestore.engines.postgres.waking import Waking
from statestore.opening import engine_for


async def _listening(url: str) -> tuple[Engine, Waking, str]:
    """An engine with a session "s", what wakes its watchers, and a cursor from which somebody has watched."""
    engine = engine_for(url)
    await engine.open()
    await engine.commit([created("s")])
    cursor = await cast("Watches", engine).change_cursor()
    await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
    return engine, cast("PostgresEngine", engine)._waking, cursor  # pyright: ignore[reportPrivateUsage]


async def _hears(of_watcher: Waking, writer: Engine) -> None:
    """Fail unless a watcher hears what somebody writes."""
    with of_watcher.sleeper() as awake:
        await writer.commit([appended("s", user("one"))])
        async with asyncio.timeout(10):
            await awake.wait()


def test_a_connection_that_went_deaf_is_replaced_when_somebody_looks(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_all_writers(monkeypatch)
    monkeypatch.setattr(waking, "QUIET", 0.0)
    listening: list[Link] = []

    def note(link: Link, data: bytes) -> bytes:
        if b"LISTEN" in data:
            listening.append(link)
        return data

    async def work() -> None:
        async with proxy_to(own_server.port, note) as port:
            url = f"postgresql://keeper@127.0.0.1:{port}/postgres?schema=deaf"
            engine, of_watcher, cursor = await _listening(url)
            await _hears(of_watcher, engine)
            listening[0].fall_silent()
            await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
            await _hears(of_watcher, engine)
            assert len(listening) == 2
            await engine.close()

    asyncio.run(work())


def test_a_connection_on_which_nothing_was_heard_for_long_is_kept_if_it_answers(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waking, "QUIET", 0.0)

    async def work() -> None:
        engine, of_watcher, cursor = await _listening(url)
        before = of_watcher._listening  # pyright: ignore[reportPrivateUsage]
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
        assert of_watcher._listening is before  # pyright: ignore[reportPrivateUsage]
        await engine.close()

    asyncio.run(work())


def test_nobody_listens_when_nobody_has_watched_since_the_last_look(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    know_all_writers(monkeypatch)

    async def work() -> None:
        engine, of_watcher, cursor = await _listening(url)

        def is_listening_after_a_look() -> bool:
            of_watcher._rest_unless_watched()  # pyright: ignore[reportPrivateUsage]
            return of_watcher._listening is not None  # pyright: ignore[reportPrivateUsage]

        with of_watcher.sleeper():
            assert is_listening_after_a_look()
            assert is_listening_after_a_look()
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
        assert is_listening_after_a_look()
        assert not is_listening_after_a_look()
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
        await _hears(of_watcher, engine)
        await engine.close()

    asyncio.run(work())
