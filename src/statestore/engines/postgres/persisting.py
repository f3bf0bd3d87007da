"""Trying again: a connection that is lost, or a server that gives way to another, is no reason to give up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import explained, is_passing
from statestore.engines.postgres.pool import Pool

T = TypeVar("T")

SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
SHARE: Final = 2 / 3
"""Of the time that is left, how much one attempt may take: a server that went silent leaves time for another."""


class Attempt:
    """One of several attempts to do something: which one, and how many seconds it may take."""

    def __init__(self, number: int, seconds: float) -> None:
        self.number = number
        self.seconds = seconds


class Persistence:
    """Does things on connections of a pool until they succeed, or time is up, or there is no hope."""

    def __init__(self, pool: Pool, *, url: str, timeout: float) -> None:
        self._pool = pool
        self._url = url
        self._timeout = timeout

    async def run(
        self,
        work: Callable[[Connection, Attempt], Awaitable[T]],
        *,
        may_pass: Callable[[BaseException], bool] = is_passing,
        is_long: bool = False,
    ) -> T:
        """What some work gives back. It may be done several times, and must not mind.

        Of long work each statement has its time, and the whole has as much as it needs.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + self._timeout
        number, pause = 0, SHORTEST_PAUSE
        earlier: Exception | None = None
        while True:
            number += 1
            left = max(end - clock(), 0.001)
            try:
                with explained(self._url, self._timeout):
                    attempt = Attempt(number, left * SHARE)
                    async with (
                        self._pool.connection(attempt.seconds) as connection,
                        asyncio.timeout(None if is_long else attempt.seconds),
                    ):
                        return await work(connection, attempt)
            except Exception as error:
                reason = error.__cause__ or error
                if isinstance(reason, TimeoutError) and earlier is not None:
                    error = earlier  # tells more than that there was no time left
                if not may_pass(reason) or clock() + pause >= end:
                    raise error from error.__cause__
                earlier = error
                if not _is_unlucky(reason):
                    self._pool.drop_idle()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


def _is_unlucky(error: BaseException) -> bool:
    """Whether the transaction met another one, and the connection is as good as before."""
    return (getattr(error, "sqlstate", None) or "").startswith(("40", "55"))
