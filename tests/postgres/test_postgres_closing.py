"""Closing where a store was not opened: it is let alone, and who uses it goes on. Opening can be called off, too."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import cast

import pytest
from postgres_hooks import know_all_writers, server_stopped

from servers.postgres import PostgresServer
from statestore.conformance.changes import appended, created, user
from statestore.engine import Wakes, Watches
from statestore.engines.postgres import pool as pooling
from statestore.engines.postgres.engine import PostgresEngine
from statestore.opening import engine_for


def test_a_child_process_that_closes_its_parents_store_leaves_it_hearing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_all_writers(monkeypatch)

    async def work() -> None:
        engine, other = engine_for(url), engine_for(url)
        await engine.open()
        await other.open()
        await engine.commit([created("s")])
        cursor = await cast("Watches", engine).change_cursor()
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)  # from now on it listens
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(engine.close())
            except BaseException:  # noqa: BLE001 - told by how the child ends
                os._exit(1)
            os._exit(0)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        waking = cast("PostgresEngine", engine)._waking  # pyright: ignore[reportPrivateUsage]
        with waking.sleeper() as awake:
            await other.commit([appended("s", user("one"))])
            async with asyncio.timeout(10):
                await awake.wait()
        await other.close()
        await engine.close()

    asyncio.run(work())


def test_another_loop_that_closes_a_store_at_work_is_not_kept_waiting(own_server: PostgresServer) -> None:
    async def work() -> None:
        engine = engine_for(f"{own_server.url()}?schema=elsewhere&timeout=20")
        await engine.open()
        await engine.commit([created("s")])
        with server_stopped(own_server):
            writing = asyncio.create_task(engine.commit([appended("s", user("one"))]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            closing = threading.Thread(target=lambda: asyncio.run(engine.close()), daemon=True)
            closing.start()
            await asyncio.to_thread(closing.join, 10)
            assert not closing.is_alive()
            assert not writing.done()
        (outcome,) = await writing
        assert outcome.seqs == (1,)
        await engine.close()

    asyncio.run(work())


def test_who_calls_off_the_opening_of_a_silent_server_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "PARTING", 0.05)

    async def work() -> None:
        is_asked = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            is_asked.set()
            await reader.read()
            writer.close()

        server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        opening = asyncio.create_task(engine_for(f"postgresql://me@127.0.0.1:{port}/db?timeout=60").open())
        await is_asked.wait()
        opening.cancel()
        await asyncio.wait([opening], timeout=20)
        assert opening.cancelled()
        server.close()

    asyncio.run(work())
