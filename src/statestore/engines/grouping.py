"""Group commit for engines that live in an event loop: what waits while one group is made is the next group."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final, NamedTuple

from statestore.engine import Batch, Outcome, Result
from statestore.errors import StoreClosed, StoreUnavailable

CommitGroup = Callable[[Sequence[Batch]], Awaitable[list[Result]]]

MOST: Final = 256
"""How many batches a group has at most: a huge one makes everybody wait for its slowest."""


class _Waiting(NamedTuple):
    """A batch, where its outcomes go, and when it came, by the loop's clock."""

    batch: Batch
    result: asyncio.Future[list[Outcome]]
    came: float


class Grouping:
    """Takes batches from many tasks and has them made together, a few groups at a time.

    A task that is cancelled while its batch waits takes it back; once the batch is in a group, the task is held until
    the group is over, so that it is either wholly done or not at all when the cancellation is felt. A batch whose turn
    comes only after ``patience`` seconds is refused: otherwise many would wait for a silent server one after the other.
    """

    def __init__(self, commit_group: CommitGroup, *, lanes: int = 1, patience: float = inf) -> None:
        self._commit_group = commit_group
        self._lanes = lanes
        self._patience = patience
        self._waiting: list[_Waiting] = []
        self._groups: set[asyncio.Task[None]] = set()
        self._is_open = True

    async def commit(self, batch: Batch) -> list[Outcome]:
        """The outcomes of one batch, made together with whatever else waits."""
        if not self._is_open:
            raise StoreClosed("the store was closed")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[list[Outcome]] = loop.create_future()
        item = _Waiting(batch, result, loop.time())
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
        self._refuse_late()
        group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
        if not group:
            return
        try:
            results: Sequence[list[Outcome] | BaseException] = await self._commit_group([item.batch for item in group])
        except GeneratorExit:  # the loop was closed under us: nobody is left to be told
            raise
        except BaseException as error:  # noqa: BLE001 - carried to every caller, whatever it is
            results = [error] * len(group)
        for item, outcome in zip(group, results, strict=True):
            if isinstance(outcome, BaseException):
                _fail(item.result, outcome)
            else:
                item.result.set_result(outcome)

    def _refuse_late(self) -> None:
        """Tell those who have waited for too long that it was in vain."""
        latest = asyncio.get_running_loop().time() - self._patience
        late = [item for item in self._waiting if item.came < latest]
        self._waiting = self._waiting[len(late) :]  # they came first
        why = f"what came before took more than {self._patience:g} s: nothing was written, try again"
        for item in late:
            _fail(item.result, StoreUnavailable(why))

    async def close(self) -> None:
        """Take no more batches, and wait for those that are under way."""
        self._is_open = False
        while self._groups:
            await asyncio.wait(self._groups)


def _fail(result: asyncio.Future[list[Outcome]], error: BaseException) -> None:
    result.set_exception(error)
    result.exception()  # a caller that was cancelled need not fetch it


async def _over(result: asyncio.Future[list[Outcome]]) -> None:
    """Wait until a batch is made or refused, however often we are cancelled."""
    while not result.done():
        try:
            await asyncio.wait([result])
        except asyncio.CancelledError:
            continue
