"""Waking those who watch: writers tell that something happened, but only while somebody wants to know.

Whoever waits says so in the table ``watched``, for half a minute at a time. A writer that looked there before does not
tell of its change: so until all that were under way then have ended, and while a change is held up by another
transaction, waits are short. Who joins others that wait cannot know how long ago the first of them said so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple
from weakref import WeakMethod

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.persisting import Persistence
from statestore.engines.postgres.pool import LONGEST_IDLE, Pool
from statestore.engines.postgres.sharing import SharedReading
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.watching import Horizon
from statestore.engines.telling import Moment

BLINK: Final = 0.05
"""Seconds of a wait out of which nobody may be woken."""
LATENESS: Final = 1 / 8
"""Or, for what has been under way for long, of that time: it need not be a writer, and may never end."""
KEPT: Final = 15.0
"""Seconds for which at least writers tell after somebody has looked."""
QUIET: Final = 5.0
"""Seconds without a word after which a connection is asked whether it still hears."""
PATIENCE: Final = 1.0
"""Seconds for it to answer, if that is not more than a tenth of a call's time."""


class _Silent(NamedTuple):
    """The last transaction that may not have seen that somebody watches, and when that was, by the loop's clock."""

    last: int
    since: float


class Waking:
    """Hears what writers tell, on a connection of its own."""

    def __init__(self, pool: Pool, persistence: Persistence, *, timeout: float) -> None:
        self._pool = pool
        self._horizons = SharedReading(persistence, self._say_and_look)
        self._timeout = timeout
        self._listening: Connection | None = None
        self._connecting = asyncio.Lock()
        self._sleepers: set[asyncio.Event] = set()
        self._was_watched = False
        self._heard = 0.0
        self._kept_until = 0.0
        self._silent = _Silent(0, 0.0)

    @contextmanager
    def sleeper(self) -> Generator[asyncio.Event]:
        """Something that is set when there may be changes."""
        awake = asyncio.Event()
        self._sleepers.add(awake)
        self._was_watched = True
        try:
            yield awake
        finally:
            self._sleepers.discard(awake)

    def wake_all(self, *_: object) -> None:
        """There may be changes, or the connection that tells of them was lost, or the store is being closed."""
        for awake in self._sleepers:
            awake.set()

    def _hear(self, *_: object) -> None:
        self._heard = asyncio.get_running_loop().time()
        self.wake_all()

    async def longest_wait(self, after: Moment) -> float:
        """Say that somebody watches; how long it may sleep until something after a moment is to be looked for."""
        now, silent_since = await self._horizons.answer(after.identity)
        if now.change > after.change:
            return 0.0
        if now.last > after.change:
            return BLINK
        if silent_since is None:
            return self._timeout
        return min(max((asyncio.get_running_loop().time() - silent_since) * LATENESS, BLINK), self._timeout)

    async def _say_and_look(self, connection: Connection, identity: str) -> tuple[Horizon, float | None]:
        """How far changes can be told, and since when there may be a writer that does not tell of its change."""
        await self._listen(identity)
        asked = asyncio.get_running_loop().time()
        kept_until, self._kept_until = self._kept_until, asked  # if this fails, whoever comes next is in doubt
        ((nobody_watched, under_way, *now),) = await connection.fetch(SQL["watch"])
        if nobody_watched or asked >= kept_until:
            self._silent = _Silent(await connection.fetchval(SQL["latest_transaction"]), asked)
        self._kept_until = asked + KEPT
        return Horizon(*now), None if under_way > self._silent.last else self._silent.since

    async def _listen(self, identity: str) -> None:
        async with self._connecting:
            if self._listening is not None and not await self._hears(self._listening):
                self._stop_listening()
            if self._listening is None:
                self._listening = await self._connected_to(f"statestore_{identity}")
                self._heard = asyncio.get_running_loop().time()
                self._look_later()

    async def _hears(self, connection: Connection) -> bool:
        """Whether a connection would tell of changes: one that is lost on the way is silent, as if there were none."""
        clock = asyncio.get_running_loop().time
        if connection.is_closed() or clock() < self._heard + QUIET:
            return not connection.is_closed()
        try:
            async with asyncio.timeout(min(PATIENCE, self._timeout / 10)):
                await connection.execute("SELECT 1")
        except Exception:  # noqa: BLE001 - whatever it is, another connection is made
            return False
        self._heard = clock()
        return True

    def _look_later(self) -> None:
        self._was_watched = False
        rest = _forgetful(WeakMethod(self._rest_unless_watched))
        self._next_look = asyncio.get_running_loop().call_later(LONGEST_IDLE, rest)

    def _rest_unless_watched(self) -> None:
        """Listen no more if nobody watched since the last look."""
        if self._was_watched or self._sleepers:
            self._look_later()
        else:
            self._stop_listening()

    async def _connected_to(self, channel: str) -> Connection:
        connection = await self._pool.connect_apart(self._timeout)
        try:
            connection.add_termination_listener(_forgetful(WeakMethod(self.wake_all)))
            await connection.add_listener(channel, _forgetful(WeakMethod(self._hear)))
        except BaseException:
            self._pool.drop(connection)
            raise
        return connection

    def close(self) -> None:
        """Wake everybody, and listen no more."""
        self.wake_all()
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._next_look.cancel()
            self._pool.drop(self._listening)
            self._listening = None


def _forgetful(method: WeakMethod[Callable[..., None]]) -> Callable[..., None]:
    """Calls a method as long as there is its object: a connection must not keep alive what keeps the connection."""

    def call(*args: object) -> None:
        alive = method()
        if alive is not None:
            alive(*args)

    return call
