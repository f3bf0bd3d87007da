"""A task that is cancelled at its n-th suspension point: as it begins to wait, a moment later, or as the wait ends."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Literal, NamedTuple

Moment = Literal["as it begins to wait", "a moment later", "as the wait ends"]
MOMENTS: tuple[Moment, ...] = ("as it begins to wait", "a moment later", "as the wait ends")


class Cancelled(NamedTuple):
    """How a task ended that was to be cancelled."""

    suspensions: int
    """How often it suspended."""
    error: BaseException | None


class _Stepped:
    """Awaits a coroutine, and cancels the task that does so at one of the points where it suspends."""

    def __init__(self, work: Coroutine[Any, Any, Any], nth: int, moment: Moment) -> None:
        self._work = work
        self._nth = nth
        self._moment = moment
        self.suspensions = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        task = asyncio.current_task()
        assert task is not None
        thrown: BaseException | None = None
        while True:
            try:
                awaited = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration as finished:
                return finished.value
            self.suspensions += 1
            if self.suspensions == self._nth:
                self._cancel(task, awaited)
            try:
                yield awaited
                thrown = None
            except BaseException as error:  # noqa: BLE001 - handed on to whom it was meant for
                thrown = error

    def _cancel(self, task: asyncio.Task[Any], awaited: asyncio.Future[Any] | None) -> None:
        if self._moment == "as it begins to wait":
            task.cancel()
        elif self._moment == "a moment later" or awaited is None:
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            awaited.add_done_callback(lambda _: task.cancel())  # before the task itself hears of it


async def cancelled_at(work: Coroutine[Any, Any, Any], nth: int, moment: Moment) -> Cancelled:
    """Run something in a task of its own, and cancel that at its n-th suspension point; 0: not at all."""
    stepped = _Stepped(work, nth, moment)

    async def run() -> Any:
        return await stepped

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    return Cancelled(stepped.suspensions, asyncio.CancelledError() if task.cancelled() else task.exception())
