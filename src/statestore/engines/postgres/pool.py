"""Connections that wait to be used again: a few, all in one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from weakref import WeakMethod

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import is_full, leaves_connection_usable

Connect = Callable[[float], Awaitable[Connection]]

PARTING: Final = 2.0
"""Seconds for a server to hear that what it is at is no longer wanted."""

LONGEST_IDLE: Final = 300.0
"""Seconds after which a connection that nobody uses may be closed; after twice as many, it is."""

FULL: Final = 0.5
"""Seconds for which a server that takes no more connections is not asked again."""

log = logging.getLogger("statestore")

_open: set[Connection] = set()
"""Keeps connections of a pool that nobody holds any more until its loop has closed them."""


class Pool:
    """Up to so many connections, made when they are needed."""

    def __init__(self, connect: Connect, size: int) -> None:
        self._connect = connect
        self._room = asyncio.Semaphore(size)
        self._idle: list[Connection] = []
        """Whichever was used last is the last, and is used next."""
        self._untouched = 0
        """How many of them, from the first one on, nobody used since the last look."""
        self._all: set[Connection] = set()
        self._in_use = 0
        self._full_until = 0.0
        self._waiting: list[asyncio.Future[Connection]] = []
        """Who waits, in this order, for a connection of ours since the server has no more for us."""
        self._partings: set[asyncio.Task[None]] = set()
        self._life: AsyncGenerator[None, None] | None = None

    async def open(self) -> None:
        """From now on, connections are closed when the loop ends or nobody holds the pool any more."""
        self._life = _life_of(self._all, self._partings)
        await anext(self._life)
        self._look_later()

    @asynccontextmanager
    async def connection(self, seconds: float) -> AsyncGenerator[Connection]:
        """A connection for as long as the block lasts, if there is one in time.

        One that may not be usable after it is not used again.
        """
        end = asyncio.get_running_loop().time() + seconds
        async with asyncio.timeout_at(end):
            await self._room.acquire()
        try:
            connection = self._idle_one() or await self._made_or_given_back(end)
            self._in_use += 1
            try:
                yield connection
            except BaseException as error:
                if not leaves_connection_usable(error) or connection.is_in_transaction():
                    self._part_with(connection)
                raise
            finally:
                self._in_use -= 1
                if connection in self._all:
                    self._give_back(connection)
        finally:
            self._room.release()

    async def _made_or_given_back(self, end: float) -> Connection:
        """A new connection, or, if the server has no more for us, the next of ours that somebody gives back."""
        clock = asyncio.get_running_loop().time
        while (connection := self._idle_one()) is None:
            if (pause := min(self._full_until, end) - clock()) > 0:
                await self._wait_for_one(pause)
                continue
            try:
                return await self.connect_apart(end - clock())
            except Exception as error:
                if not is_full(error):
                    raise
                self._full_until = clock() + FULL
                if not self._idle and (not self._in_use or self._full_until >= end):
                    raise
        return connection

    async def _wait_for_one(self, seconds: float) -> None:
        """Wait until it is our turn to have a connection that somebody gives back: it is the first to be used then."""
        given: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiting.append(given)
        try:
            await asyncio.wait([given], timeout=seconds)
        except asyncio.CancelledError:
            if given.done():
                self._give_back(given.result())
            raise
        finally:
            if given in self._waiting:
                self._waiting.remove(given)
        if given.done():
            self._idle.append(given.result())

    def _give_back(self, connection: Connection) -> None:
        if self._waiting:
            self._waiting.pop(0).set_result(connection)
        else:
            self._idle.append(connection)

    def _idle_one(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            self._untouched = min(self._untouched, len(self._idle))
            if not connection.is_closed():
                return connection
            self._forget(connection)
        return None

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_look = loop.call_later(LONGEST_IDLE, _call_if_alive, WeakMethod(self._let_go_of_untouched))

    def _let_go_of_untouched(self) -> None:
        """Close what nobody used since the last time: as many as at the busiest moment may not be needed any more."""
        untouched, self._idle = self._idle[: self._untouched], self._idle[self._untouched :]
        self._untouched = len(self._idle)
        for connection in untouched:
            self._forget(connection)
        if untouched:
            self._leave_to_itself(_closed(untouched, PARTING))
        self._look_later()

    def _forget(self, connection: Connection) -> None:
        self._all.discard(connection)
        _open.discard(connection)

    async def connect_apart(self, seconds: float) -> Connection:
        """A connection that does not count, and lasts as long as the pool."""
        connecting = asyncio.ensure_future(self._connect(seconds))
        try:
            connection = await asyncio.shield(connecting)
        except asyncio.CancelledError:
            self._leave_to_itself(_unwanted(connecting))  # the driver does not like to be cancelled while it connects
            raise
        self._all.add(connection)
        _open.add(connection)
        return connection

    def _part_with(self, connection: Connection) -> None:
        """Break a connection off that may be at work, once the server was told to leave it; nobody waits for that."""
        self._forget(connection)
        self._leave_to_itself(_closed([connection], PARTING))

    def _leave_to_itself(self, work: Coroutine[Any, Any, None]) -> None:
        parting = asyncio.create_task(work, name="statestore-parting")
        self._partings.add(parting)
        parting.add_done_callback(self._partings.discard)

    def drop(self, connection: Connection) -> None:
        """Break a connection off."""
        self._forget(connection)
        connection.terminate()

    def drop_idle(self) -> None:
        """Let go of what waits: where one connection was lost, the others are of no use either."""
        while self._idle:
            self.drop(self._idle.pop())
        self._untouched = 0

    async def close(self, seconds: float) -> None:
        """Say good-bye to the server; nobody may be using a connection any more."""
        idle, self._idle = self._idle, []
        try:
            await _closed(idle, seconds)
            if self._partings:
                await asyncio.wait(self._partings)
        finally:
            for connection in idle:
                self._forget(connection)
        if self._life is not None:
            self._next_look.cancel()
            await self._life.aclose()


def _call_if_alive(method: WeakMethod[Callable[[], None]]) -> None:
    """Call a method if there still is its object: a timer must not keep a pool that nobody holds any more."""
    alive = method()
    if alive is not None:
        alive()


async def _unwanted(connecting: asyncio.Future[Connection]) -> None:
    """Wait for a while until a connection is made, or is not, and close it."""
    await asyncio.wait([connecting], timeout=PARTING)
    connecting.cancel()
    await asyncio.wait([connecting])
    if not connecting.cancelled() and connecting.exception() is None:
        await _closed([connecting.result()], PARTING)


async def _closed(connections: Sequence[Connection], seconds: float) -> None:
    """Say good-bye on all of them at once; whichever the server has not answered in time is broken off."""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(connection.close() for connection in connections), return_exceptions=True)
    except TimeoutError:
        log.debug("a server did not answer a good-bye within %g s", seconds)
    finally:
        for connection in connections:
            connection.terminate()


async def _life_of(connections: set[Connection], partings: set[asyncio.Task[None]]) -> AsyncGenerator[None, None]:
    """Ends the connections when the generator is closed: by the pool, by the loop's end, or by being forgotten."""
    try:
        yield
    finally:
        if partings:
            await asyncio.wait(partings)  # of calls that the loop's end has cancelled
        for connection in tuple(connections):
            connection.terminate()
        _open.difference_update(connections)
        connections.clear()
