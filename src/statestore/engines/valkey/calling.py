"""Calls to a server: several in one round trip, repeated while there is time, and never without an end.

Repeating is safe because reading changes nothing and a batch that is made carries a token.
"""

from __future__ import annotations

import asyncio
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from statestore.engines.calls import is_at_the_end
from statestore.engines.valkey.address import Address
from statestore.engines.valkey.connecting import pool_for
from statestore.engines.valkey.driver import DriverConnectionError, RedisError
from statestore.engines.valkey.failures import explanation, has_forgotten, is_refusal, is_starting, may_pass
from statestore.engines.valkey.pool import Command, ConnectionPool
from statestore.engines.valkey.scripts import Script
from statestore.errors import StateStoreError

Attempt = Callable[[Sequence[Command]], Awaitable[list[Any]]]
"""Sends some commands; what is replied to each, errors among them."""

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


async def _one_by_one(attempt: Attempt, commands: Sequence[Command]) -> list[Any]:
    """Send each of some commands by itself, all at the same time."""
    found = await asyncio.gather(*(attempt([command]) for command in commands))
    return [reply for replies in found for reply in replies]


class Caller(ABC):
    """Whoever answers: one server, or a cluster."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.repeated = 0
        """How often something was sent again."""
        self._lifetime: AsyncGenerator[None, None] | None = None

    async def open(self) -> None:
        """Get ready for calls; connections are made when they are needed."""
        end, abandon = self._begin()
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
    def _begin(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        """Get ready for calls; what ends that, and what ends it without waiting."""

    @abstractmethod
    def scan(self, pattern: str) -> AsyncIterator[str]:
        """All keys that match a pattern, in no order, some perhaps twice."""

    @abstractmethod
    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Some settings of each server, by the server's name; raises if that is forbidden."""

    @abstractmethod
    async def _attempt(self, commands: Sequence[Command], script: Script | None, besides: list[Command]) -> list[Any]:
        """Send some commands, calls of a script if one is named; what is replied to each, errors among them.

        Of the commands besides, those go along that are for a server which is called anyway; they leave the list.
        """

    async def call_each(self, commands: Sequence[Command]) -> list[Any]:
        """What is replied to each of some commands, an error where it was refused or did not get through."""
        return await self._persist(partial(self._attempt, script=None, besides=[]), commands)

    async def call_with_refusals(self, commands: Sequence[Command]) -> list[Any]:
        """What is replied to each of some commands, an error where it was refused.

        Raises if one did not get through.
        """
        return self._got_through(await self.call_each(commands))

    async def call_all(self, commands: Sequence[Command]) -> list[Any]:
        """What is replied to each of some commands; raises if one was refused or did not get through."""
        return [self.granted(reply) for reply in await self.call_each(commands)]

    async def call(self, *command: str | bytes | int) -> Any:
        """What is replied to a command."""
        (reply,) = await self.call_each([command])
        return self.granted(reply)

    async def run_each(
        self,
        script: Script,
        calls: Sequence[tuple[Sequence[str], Sequence[str | bytes | int]]],
        *,
        besides: list[Command],
    ) -> list[Any]:
        """What a script gives back for each set of keys and arguments, an error where it failed or did not get through.

        Keys are those that a script uses, as far as they are known: while a cluster moves them to another node, it
        says so if it has only some of them. Of the commands besides, those that go to the same servers are sent along
        and leave the list; nobody wants to know what comes of them.
        """
        commands = [("EVALSHA", script.digest, len(keys), *keys, *arguments) for keys, arguments in calls]
        return await self._persist(partial(self._attempt, script=script, besides=besides), commands)

    async def run_with_refusals(
        self, script: Script, calls: Sequence[tuple[Sequence[str], Sequence[str | bytes | int]]]
    ) -> list[Any]:
        """What a script gives back for each set of keys and arguments, an error where it failed.

        Raises if one did not get through.
        """
        return self._got_through(await self.run_each(script, calls, besides=[]))

    async def run(
        self, script: Script, keys: Sequence[str], *arguments: str | bytes | int, keep_trying: bool = True
    ) -> Any:
        """What a script gives back."""
        command = ("EVALSHA", script.digest, len(keys), *keys, *arguments)
        attempt = partial(self._attempt, script=script, besides=[])
        (reply,) = await self._persist(attempt, [command], keep_trying=keep_trying)
        return self.granted(reply)

    async def _exchange(self, pool: ConnectionPool, commands: Sequence[Command], *, share: int = ATTEMPTS) -> list[Any]:
        """Send some commands to one server, and wait for a share of the time-out.

        What is replied to each, errors among them; what befalls the connection is the reply to them all.
        """
        try:
            async with asyncio.timeout(self.address.timeout / share):
                return await pool.exchange(commands)
        except (RedisError, OSError) as error:  # a time-out is one of the system's errors
            return [error] * len(commands)
        except RuntimeError as error:
            if is_at_the_end(error):
                return [error] * len(commands)
            raise

    async def _with_text(
        self, script: Script | None, commands: Sequence[Command], replies: list[Any], send: Attempt
    ) -> list[Any]:
        """The replies to calls of a script by its digest, which go with its text where the server has forgotten it."""
        forgotten = [place for place, reply in enumerate(replies) if has_forgotten(reply)]
        if script is not None and forgotten:
            again = [("EVAL", script.text, *commands[place][2:]) for place in forgotten]
            for place, reply in zip(forgotten, await send(again), strict=True):
                replies[place] = reply
        return replies

    async def _persist(self, attempt: Attempt, commands: Sequence[Command], *, keep_trying: bool = True) -> list[Any]:
        """What is replied to each of some commands, an error where it was refused or did not get through.

        Those that may get through another time are sent again until they do, the time is over, or there is no hope;
        the others have their reply. When a connection is lost, each is sent by itself once: if the server ends the
        connection because of one of them, as of one that is too long for it, the others get through.
        """

        def has_hope(reply: Any) -> bool:
            return isinstance(reply, Exception) and may_pass(reply) and (keep_trying or is_starting(reply))

        if not commands:
            return []
        deadline = asyncio.get_running_loop().time() + self.address.timeout
        pause = FIRST_PAUSE
        were_alone = False
        replies = await attempt(commands)
        while again := [place for place, reply in enumerate(replies) if has_hope(reply)]:
            if asyncio.get_running_loop().time() + pause >= deadline:
                break
            self.repeated += 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            goes_alone = not were_alone and any(isinstance(replies[place], DriverConnectionError) for place in again)
            were_alone |= goes_alone
            send = partial(_one_by_one, attempt) if goes_alone else attempt
            for place, reply in zip(again, await send([commands[place] for place in again]), strict=True):
                replies[place] = reply
        return replies

    def _got_through(self, replies: list[Any]) -> list[Any]:
        """Replies of which each came from the server that was called; raises if one did not."""
        return [reply if is_refusal(reply) else self.granted(reply) for reply in replies]

    def granted(self, reply: Any) -> Any:
        """A reply that is no error; raises the error of ours if it is one."""
        error = self.explained(reply)
        if error is not None:
            raise error
        return reply

    async def _keys_at(self, pool: ConnectionPool, pattern: str) -> AsyncIterator[str]:
        """All keys of one server that match a pattern."""
        cursor: bytes = b"0"
        while True:
            command = ("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            (reply,) = await self._persist(partial(self._exchange, pool), [command])
            cursor, keys = self.granted(reply)
            for key in keys:
                yield key.decode()
            if cursor == b"0":
                return

    def explained(self, reply: Any) -> StateStoreError | None:
        """The error of ours for a reply that is an error."""
        if not isinstance(reply, Exception):
            return None
        error = explanation(reply, self.address)
        error.__cause__ = reply
        return error


class ServerCaller(Caller):
    """One server, by any number of connections."""

    _pool: ConnectionPool

    def _begin(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        self._pool = pool_for(self.address, self.address.hosts[0])
        return self._pool.close, self._pool.abandon

    async def _attempt(self, commands: Sequence[Command], script: Script | None, besides: list[Command]) -> list[Any]:
        along = besides.copy()
        besides.clear()
        replies = await self._exchange(self._pool, [*commands, *along])
        return await self._with_text(script, commands, replies[: len(commands)], partial(self._exchange, self._pool))

    def scan(self, pattern: str) -> AsyncIterator[str]:
        return self._keys_at(self._pool, pattern)

    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        return {"the server": settings_in(await self.call_all([("CONFIG", "GET", name) for name in names]))}

    async def is_in_cluster(self) -> bool:
        """Whether the server is a node of a cluster, as far as we may ask."""
        attempt = partial(self._exchange, self._pool)
        (reply,) = self._got_through(await self._persist(attempt, [("INFO", "cluster")], keep_trying=False))
        return isinstance(reply, bytes) and b"cluster_enabled:1" in reply


def settings_in(replies: Iterable[Any]) -> dict[str, str]:
    """The settings that a server tells."""
    found: dict[str, str] = {}
    for reply in replies:
        found |= {key.decode(): value.decode() for key, value in zip(reply[::2], reply[1::2], strict=True)}
    return found
