"""Connections to one server: as many as are needed at once, kept for the next ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from statestore.engines.valkey.driver import AbstractConnection, ResponseError

Command = Sequence[str | bytes | int]


class ConnectionPool:
    """Hands out connections. One that the server has closed meanwhile fails when it is used, and is made anew then."""

    def __init__(self, make: Callable[[], AbstractConnection], most: int) -> None:
        self._make = make
        self._all: list[AbstractConnection] = []
        self._free: list[AbstractConnection] = []
        self._turns = asyncio.Semaphore(most)

    async def _take(self) -> AbstractConnection:
        """A connection that nobody else uses; waits if there are too many in use."""
        await self._turns.acquire()
        if self._free:
            connection = self._free.pop()
        else:
            connection = self._make()
            self._all.append(connection)
        try:
            await connection.connect()
        except BaseException:
            await connection.disconnect(nowait=True)  # it may be connected, and not yet known to the server
            self._give_back(connection)
            raise
        return connection

    def _give_back(self, connection: AbstractConnection) -> None:
        """Let others use a connection."""
        self._free.append(connection)
        self._turns.release()

    async def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Send some commands together; what is replied to each, errors among them."""
        connection = await self._take()
        replies: list[Any] = []
        try:
            await connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            for _ in commands:
                try:
                    replies.append(await connection.read_response())
                except ResponseError as error:
                    replies.append(error)
        except BaseException:
            await connection.disconnect(nowait=True)
            raise
        finally:
            self._give_back(connection)
        return replies

    async def close(self) -> None:
        """Disconnect all."""
        for connection in self._all:
            await connection.disconnect()

    def abandon(self) -> None:
        """Disconnect all, in the loop but outside of any task, where the driver does so without waiting."""
        for connection in self._all:
            farewell: Any = connection.disconnect(nowait=True)
            try:
                farewell.send(None)
            except StopIteration:
                continue
            farewell.close()
