"""Calls to a server: several in one round trip, repeated while there is time, and never without an end.

Repeating is safe because reading changes nothing and a batch that is made carries a token.
"""

from __future__ import annotations

import asyncio
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from statestore.engines.calls import is_at_the_end
from statestore.engines.valkey.address import Address
from statestore.engines.valkey.connecting import check_driver, connect_server
from statestore.engines.valkey.pool import Command, ConnectionPool
from statestore.engines.valkey.scripts import Script

FIRST_PAUSE: Final = 0.01
LONGEST_PAUSE: Final = 0.5
ATTEMPTS: Final = 3
"""How many silent servers are waited for within the time-out: a connection may be dead while its server is not."""


async def _lifetime(end: Callable[[], Awaitable[object]]) -> AsyncGenerator[None, None]:
    """Ends what was begun when it is closed: by us, or by the event loop when that ends."""
    try:
        yield
    finally:
        await end()


def _drop(loop: asyncio.AbstractEventLoop, abandon: Callable[[], object], _: AsyncGenerator[None, None]) -> None:
    """For a store that nobody closed. Keeps the lifetime alive until here, so that the loop's end is its end, too."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(abandon)


class Caller(ABC):
    """Whoever answers: one server, or a cluster."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.repeated = 0
        """How often something was sent again."""
        self._lifetime: AsyncGenerator[None, None] | None = None

    async def open(self) -> None:
        """Make the client."""
        check_driver()
        end, abandon = self._connect()
        self._lifetime = _lifetime(end)
        await anext(self._lifetime)
        self._dropped = weakref.finalize(self, _drop, asyncio.get_running_loop(), abandon, self._lifetime)
        self._dropped.atexit = False

    async def close(self) -> None:
        """Let go of all connections."""
        if self._lifetime is not None:
            await self._lifetime.aclose()
            self._dropped.detach()

    @abstractmethod
    def _connect(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        """Make the client; what ends it, and what ends it without waiting."""

    @abstractmethod
    def scan(self, pattern: str) -> AsyncIterator[str]:
        """All keys that match a pattern, in no order, some perhaps twice."""

    @abstractmethod
    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Some settings of each server, by the server's name; raises what the driver does if that is forbidden."""

    @abstractmethod
    async def _attempt(self, commands: Sequence[Command]) -> list[Any]:
        """Send some commands and give back what is replied to each, errors among them."""

    async def call_all(self, commands: Sequence[Command]) -> list[Any]:
        """What is replied to each of some commands, an error where it was refused."""
        return await self._persist(lambda: self._attempt(commands), keep_trying=True)

    async def call(self, *command: str | bytes | int) -> Any:
        """What is replied to a command."""
        (reply,) = await self.call_all([command])
        if isinstance(reply, Exception):
            raise self._explained(reply) from reply
        return reply

    async def run_all(
        self,
        script: Script,
        calls: Sequence[tuple[Sequence[str], Sequence[str | bytes | int]]],
        *,
        besides: Sequence[Command] = (),
    ) -> list[Any]:
        """What a script gives back for each set of keys and arguments, an error where it failed.

        Keys are those that a script uses, as far as they are known: while a cluster moves them to another node, it
        says so if it has only some of them. Some more commands may go along; nobody wants to know what comes of them.
        """
        commands = [("EVALSHA", script.digest, len(keys), *keys, *arguments) for keys, arguments in calls]
        everything = [*commands, *besides]
        replies = await self._persist(lambda: self._attempt_script(script, everything), keep_trying=True)
        return replies[: len(commands)]

    async def run(
        self, script: Script, keys: Sequence[str], *arguments: str | bytes | int, keep_trying: bool = True
    ) -> Any:
        """What a script gives back."""
        command = ("EVALSHA", script.digest, len(keys), *keys, *arguments)
        (reply,) = await self._persist(lambda: self._attempt_script(script, [command]), keep_trying=keep_trying)
        if isinstance(reply, Exception):
            raise self._explained(reply) from reply
        return reply

    async def _attempt_script(self, script: Script, commands: Sequence[Command]) -> list[Any]:
        """Call a script by its digest, and with its text where the server has forgotten it."""
        from statestore.engines.valkey.failures import has_forgotten  # noqa: PLC0415 - needs the driver

        replies = await self._attempt(commands)
        forgotten = [place for place, reply in enumerate(replies) if has_forgotten(reply)]
        if forgotten:
            again = [("EVAL", script.text, *commands[place][2:]) for place in forgotten]
            for place, reply in zip(forgotten, await self._attempt(again), strict=True):
                replies[place] = reply
        return replies

    async def _persist(self, attempt: Callable[[], Awaitable[list[Any]]], *, keep_trying: bool) -> list[Any]:
        """Try until it gets through, the time is over, or there is no hope."""
        from statestore.engines.valkey.failures import (  # noqa: PLC0415 - needs the driver
            DriverError,
            is_starting,
            may_pass,
        )

        timeout = self.address.timeout
        deadline = asyncio.get_running_loop().time() + timeout
        pause = FIRST_PAUSE
        while True:
            try:
                async with asyncio.timeout(timeout / ATTEMPTS):
                    replies = await attempt()
                for reply in replies:
                    if isinstance(reply, Exception) and may_pass(reply):
                        raise reply
                return replies
            except DriverError as error:  # a time-out is one of the system's errors
                is_last = asyncio.get_running_loop().time() + pause >= deadline
                if is_last or not may_pass(error) or not (keep_trying or is_starting(error)):
                    raise self._explained(error) from error
            except RuntimeError as error:
                if is_at_the_end(error):
                    raise self._explained(error) from error
                raise
            self.repeated += 1
            replies = reply = None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _keys_at(self, pool: ConnectionPool, pattern: str) -> AsyncIterator[str]:
        """All keys of one server that match a pattern."""
        cursor: bytes = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            (reply,) = await self._persist(partial(pool.exchange, [command]), keep_trying=True)
            if isinstance(reply, Exception):
                raise self._explained(reply) from reply
            cursor, keys = reply
            for key in keys:
                yield key.decode()
            if cursor == b"0":
                return

    def _explained(self, error: Exception) -> Exception:
        from statestore.engines.valkey.failures import explanation  # noqa: PLC0415 - needs the driver

        return explanation(error, self.address.url, self.address.timeout)

    def explained(self, reply: Any) -> Exception | None:
        """The error of ours for a reply that is one."""
        if not isinstance(reply, Exception):
            return None
        error = self._explained(reply)
        error.__cause__ = reply
        return error


class ServerCaller(Caller):
    """One server, by any number of connections."""

    _pool: ConnectionPool

    def _connect(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        self._pool = connect_server(self.address, self.address.hosts[0])
        return self._pool.close, self._pool.abandon

    async def _attempt(self, commands: Sequence[Command]) -> list[Any]:
        return await self._pool.exchange(commands)

    def scan(self, pattern: str) -> AsyncIterator[str]:
        return self._keys_at(self._pool, pattern)

    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return {"the server": settings_in(await self.call_all([("CONFIG", "GET", name) for name in names]))}

    async def is_in_cluster(self) -> bool:
        """Whether the server is a node of a cluster, as far as we may ask."""
        (reply,) = await self._persist(lambda: self._attempt([("INFO", "cluster")]), keep_trying=False)
        return isinstance(reply, bytes) and b"cluster_enabled:1" in reply


def settings_in(replies: Sequence[Any]) -> dict[str, str]:
    """The settings that a server tells."""
    found: dict[str, str] = {}
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
        found |= {key.decode(): value.decode() for key, value in zip(reply[::2], reply[1::2], strict=True)}
    return found
