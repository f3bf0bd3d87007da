"""A proxy between stores and a server, in the loop of a test: connections through it go wrong as they are told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Link:
    """One connection through a proxy."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self._client = client
        self._may_pass = asyncio.Event()
        self._may_pass.set()

    def fall_silent(self) -> None:
        """Let nothing through any more, in either direction."""
        self._may_pass.clear()

    def refuse(self, state: str, message: str) -> None:
        """Answer as a server does that wants no connection, and cut it."""
        fields = f"SFATAL\0VFATAL\0C{state}\0M{message}\0\0".encode()
        self._client.write(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        self._client.close()

    def cut(self) -> None:
        """End the connection without a word."""
        self._client.transport.abort()

    async def pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, change: Callable[[bytes], bytes] = bytes
    ) -> None:
        """Carry what comes from one side to the other until one of them ends."""
        try:
            while data := await reader.read(1 << 16):
                changed = change(data)
                await self._may_pass.wait()
                writer.write(changed)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


Hook = Callable[[Link, bytes], bytes]
"""Sees what a store sends on a connection, and tells what the server gets of it."""


@asynccontextmanager
async def proxy_to(port: int, hook: Hook) -> AsyncIterator[int]:
    """The port of a proxy for as long as the block lasts."""
    links: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        link = Link(writer)
        ways = (
            link.pass_on(reader, there_writer, lambda data: hook(link, data)),
            link.pass_on(there_reader, writer),
        )
        for way in map(asyncio.create_task, ways):
            links.add(way)
            way.add_done_callback(links.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(links):
            task.cancel()
