"""Several hosts of which not all answer: whichever can be used is found, in whatever order they are named."""

from __future__ import annotations

import asyncio
import socket

import pytest
from postgres_proxy import Link, proxy_to

from servers.ports import free_port
from servers.postgres import PostgresServer
from statestore import StateStore
from statestore.opening import engine_for


def test_a_host_that_is_dark_leaves_time_to_ask_the_next(own_server: PostgresServer) -> None:
    with socket.socket() as dark:
        dark.bind(("127.0.0.1", 0))
        dark.listen()
        hosts = f"127.0.0.1:{dark.getsockname()[1]},{own_server.address}"
        with StateStore.open(f"postgresql://keeper@{hosts}/postgres?schema=dark&timeout=6") as store:
            store.save_json("notes", "n", 1)


@pytest.mark.parametrize("starts_first", [True, False])
def test_a_host_that_starts_is_waited_for_although_another_refuses(
    own_server: PostgresServer, starts_first: bool
) -> None:
    asked: list[Link] = []

    def start_up(link: Link, data: bytes) -> bytes:
        if b"\0search_path\0" in data:
            asked.append(link)
            if len(asked) <= 2:
                link.refuse("57P03", "the database system is starting up")
        return data

    async def work() -> None:
        async with proxy_to(own_server.port, start_up) as port:
            hosts = [f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"]
            named = ",".join(hosts if starts_first else reversed(hosts))
            engine = engine_for(f"postgresql://keeper@{named}/postgres?schema=starting")
            await engine.open()
            await engine.close()

    asyncio.run(work())
    assert len(asked) == 3


def test_a_connection_that_is_lost_while_a_store_is_opened_is_made_again(own_server: PostgresServer) -> None:
    cut: list[Link] = []

    def cut_once(link: Link, data: bytes) -> bytes:
        if b"server_version_num" in data and not cut:
            cut.append(link)
            link.cut()
        return data

    async def work() -> None:
        async with proxy_to(own_server.port, cut_once) as port:
            engine = engine_for(f"postgresql://keeper@127.0.0.1:{port}/postgres?schema=cut")
            await engine.open()
            await engine.close()

    asyncio.run(work())
    assert cut
    StateStore.open(f"{own_server.url()}?schema=cut", create=False).close()
