"""One call on its way from an event loop through a thread and back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any


class Job:
    """Something that a thread does for a task of an event loop."""

    __slots__ = ("_claim", "_error", "_future", "_is_delivered", "_result", "_waiter", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._claim = threading.Lock()
        self._result: Any = None
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._future: asyncio.Future[Any] = self.loop.create_future()
        self._is_delivered = False

    def claim(self) -> bool:
        """Whether it is the caller's to do, or to withdraw; only the first one to ask hears yes."""
        return self._claim.acquire(blocking=False)

    def succeed(self, result: Any) -> None:
        """In a thread: note what came of it."""
        self._result = result

    def fail(self, error: BaseException) -> None:
        """In a thread: note why nothing came of it."""
        self._error = error

    def deliver(self) -> None:
        """In the loop: wake whoever waits."""
        self._is_delivered = True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif not self._future.done():
            if self._error is None:
                self._future.set_result(self._result)
            else:
                self._future.set_exception(self._error)

    async def result(self, withdrawn: Callable[[], object] | None = None) -> Any:
        """In the loop: wait for what comes of it; if cancelled, withdraw it, or wait until it is over."""
        try:
            return await self._future
        except asyncio.CancelledError:
            if not self.claim():
                await self._finished()
            elif withdrawn is not None:
                withdrawn()
            raise

    async def _finished(self) -> None:
        """Wait for what can no longer be stopped, however often we are cancelled."""
        while not self._is_delivered:
            self._waiter = self.loop.create_future()
            with suppress(asyncio.CancelledError):
                await self._waiter


def deliver_all(jobs: Iterable[Job], loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: wake all who wait for these, which are of one loop, in one go."""
    with suppress(RuntimeError):  # the loop was closed meanwhile: nobody is left to be told
        loop.call_soon_threadsafe(_deliver_all, jobs)


def _deliver_all(jobs: Iterable[Job]) -> None:
    for job in jobs:
        job.deliver()
