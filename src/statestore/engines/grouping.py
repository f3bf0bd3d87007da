"""Group commit for engines that live in an event loop: what waits while one group is made is the next group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from statestore.engine import Change, Outcome
from statestore.errors import StoreClosed

Results = list[list[Outcome] | Exception]
CommitGroup = Callable[[Sequence[Sequence[Change]]], Awaitable[Results]]

MOST: Final = 256
"""How many batches a group has at most: a huge one makes everybody wait for its slowest."""


class Grouping:
    """Takes batches from many tasks and has them made together, a few groups at a time.

    A task that is cancelled while its batch waits takes it back; once the batch is in a group, the task is held until
    the group is over, so that it is either wholly done or not at all when the cancellation is felt.
    """

    def __init__(self, commit_group: CommitGroup, *, lanes: int = 1) -> None:
        self._commit_group = commit_group
        self._lanes = lanes
        self._waiting: list[tuple[Sequence[Change], asyncio.Future[list[Outcome]]]] = []
        self._groups: set[asyncio.Task[None]] = set()
        self._is_open = True

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        """The outcomes of one batch, made together with whatever else waits."""
        if not self._is_open:
            raise StoreClosed("the store was closed")
        result: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        item = (batch, result)
        self._waiting.append(item)
        self._begin()
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            if item in self._waiting:
                self._waiting.remove(item)
            else:
                await _over(result)
            raise

    def _begin(self) -> None:
        if self._waiting and len(self._groups) < self._lanes:
            group = asyncio.create_task(self._run(), name="statestore-group")
            self._groups.add(group)
            group.add_done_callback(self._done)

    def _done(self, group: asyncio.Task[None]) -> None:
        self._groups.discard(group)
        self._begin()

    async def _run(self) -> None:
        """Make one group of what waits when this task gets its turn, and tell each caller what came of it."""
        group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        if not group:
            return
        try:
            results: Sequence[list[Outcome] | BaseException] = await self._commit_group([batch for batch, _ in group])
        except GeneratorExit:  # the loop was closed under us: nobody is left to be told
            raise
        except BaseException as error:  # noqa: BLE001 - carried to every caller, whatever it is
            results = [error] * len(group)
        for (_, result), outcome in zip(group, results, strict=True):
            if isinstance(outcome, BaseException):
                result.set_exception(outcome)
                result.exception()  # a caller that was cancelled need not fetch it
            else:
                result.set_result(outcome)

    async def close(self) -> None:
        """Take no more batches, and wait for those that are under way."""
        self._is_open = False
        while self._groups:
            await asyncio.wait(self._groups)


async def _over(result: asyncio.Future[list[Outcome]]) -> None:
    """Wait until a batch is made or refused, however often we are cancelled."""
    while not result.done():
        try:
            await asyncio.wait([result])
        except asyncio.CancelledError:
            continue
