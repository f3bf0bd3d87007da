"""Trying again: a connection that is lost, or a server that gives way to another, is no reason to give up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import (
    explained,
    is_full,
    is_passing,
    is_too_late,
    may_have_happened,
    met_another,
)
from statestore.engines.postgres.pool import Pool
from statestore.errors import StoreUnavailable

T = TypeVar("T")

SHORTEST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.5
SHARE: Final = 2 / 3
"""Of the time that is left, how much may be taken to get a connection, and then to do the work on it: a server that
went silent leaves time for another."""


MARGIN: Final = 1 / 10
LONGEST_MARGIN: Final = 1.0
"""Of a call's time, how much is left at its end to hear of a commit that was just in time: nothing is begun in it."""


class Attempt:
    """One of several attempts to do something: which one, and until when, by the loop's clock, it may be committed."""

    def __init__(self, number: int, deadline: float, limit: asyncio.Timeout, seconds: float) -> None:
        self.number = number
        self.deadline = deadline
        self._limit = limit
        self._seconds = seconds

    def go_on(self) -> None:
        """A part of long work is done: the next has as much time as a whole call."""
        self._limit.reschedule(asyncio.get_running_loop().time() + self._seconds)


class Persistence:
    """Does things on connections of a pool until they succeed, or time is up, or there is no hope."""

    def __init__(self, pool: Pool, *, url: str, timeout: float) -> None:
        self._pool = pool
        self._url = url
        self._timeout = timeout

    def end_of_call(self) -> float:
        """When a call that begins now has to be over, by the loop's clock."""
        return asyncio.get_running_loop().time() + self._timeout

    async def run(
        self,
        work: Callable[[Connection, Attempt], Awaitable[T]],
        *,
        may_pass: Callable[[BaseException], bool] = is_passing,
        end: float | None = None,
    ) -> T:
        """What some work gives back. It may be done several times, and must not mind.

        It has the time of a call, or until ``end`` by the loop's clock if its call began earlier.
        """
        clock = asyncio.get_running_loop().time
        end = self.end_of_call() if end is None else end
        deadline = end - min(self._timeout * MARGIN, LONGEST_MARGIN)
        number, pause = 0, SHORTEST_PAUSE
        earlier: Exception | None = None
        unknown: Exception | None = None
        while True:
            number += 1
            left = max(end - clock(), 0.001)
            try:
                with explained(self._url, self._timeout):
                    async with (
                        self._pool.connection(left * SHARE) as connection,
                        asyncio.timeout((end - clock()) * SHARE) as limit,
                    ):
                        return await work(connection, Attempt(number, deadline, limit, self._timeout))
            except Exception as error:
                reason = error.__cause__ or error
                if may_have_happened(reason):
                    unknown = unknown or error
                elif unknown is not None:  # what is said of this attempt does not tell what became of that one
                    error = StoreUnavailable(f"{unknown}; then: {reason}")
                    error.__cause__ = unknown.__cause__
                if (isinstance(reason, TimeoutError) or is_too_late(reason)) and earlier is not None:
                    error = earlier  # tells more than that there was no time left
                if not may_pass(reason) or clock() + pause >= (deadline if met_another(reason) else end):
                    raise error from error.__cause__
                earlier = error
                if not met_another(reason) and not is_full(reason):
                    self._pool.drop_idle()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
