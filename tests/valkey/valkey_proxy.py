"""A proxy before a server that lets a request through and loses the answer: the connection is cut in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class LosingProxy:
    """Forwards everything, but loses the answers to some requests that hold a certain text."""

    def __init__(self, port: int, text: bytes, times: int) -> None:
        self._port = port
        self._text = text
        self.left = times
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            while request := await reader.read(1 << 16):
                there_writer.write(request)
                answer = await there_reader.read(1 << 16)
                if self.left and self._text in request:
                    self.left -= 1
                    return
                writer.write(answer)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            there_writer.close()
            writer.close()


@asynccontextmanager
async def losing_proxy(port: int, text: bytes, *, times: int) -> AsyncIterator[LosingProxy]:
    """A proxy for as long as the block lasts."""
    proxy = LosingProxy(port, text, times)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    async with server:
        yield proxy
