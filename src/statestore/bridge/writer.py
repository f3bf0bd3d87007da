"""A thread that commits for all tasks: whatever waits goes together, and its callers are woken together.

An engine may gather by itself what threads commit at once. Tasks would come to it through a few worker threads, though,
so that no group could have more batches than there are workers. Here it has as many as there are tasks that wait.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from queue import SimpleQueue

from statestore.bridge.jobs import Job, deliver_all
from statestore.engine import Change, GroupCommits, Outcome
from statestore.errors import StoreClosed
from statestore.host import step
from statestore.threads import started

_Queue = SimpleQueue[tuple[Job, Sequence[Change]] | None]


class GroupWriter:
    """Hands batches to an engine that commits in groups."""

    def __init__(self, engine: GroupCommits) -> None:
        self._engine = engine
        self._queue: _Queue = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._queueing = threading.Lock()
        """Several loops may use a store, and its only writer is started once."""
        weakref.finalize(self, self._queue.put, None)  # for a store that nobody closed

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        """Make a batch, together with others; `StoreClosed` if nobody is left to make it."""
        job = Job()
        with self._queueing:
            if self._is_stopped:
                raise StoreClosed("the store was closed")
            if self._thread is None:
                self._thread = started("statestore-writer", _write, self._engine, self._queue)
            self._queue.put((job, batch))
        return await job.result()

    def stop(self) -> None:
        """Let the thread end when it has done what is queued."""
        with self._queueing:
            self._is_stopped = True
            self._queue.put(None)


def _write(engine: GroupCommits, queue: _Queue) -> None:
    item = queue.get()
    while item is not None:
        waiting = [item]
        while not queue.empty() and (item := queue.get()) is not None:  # nobody else takes from it
            waiting.append(item)
        group = [(job, batch) for job, batch in waiting if job.claim()]
        if group:
            _commit(engine, group)
        if item is not None:
            del item, waiting, group  # nothing is kept while nothing is to be done
            item = queue.get()


def _commit(engine: GroupCommits, group: list[tuple[Job, Sequence[Change]]]) -> None:
    jobs = [job for job, _ in group]
    try:
        results = step(engine.commit_group([batch for _, batch in group]))
    except BaseException as error:  # noqa: BLE001 - carried to the callers, whatever it is
        results = [error for _ in group]
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, BaseException):
            job.fail(result)
        else:
            job.succeed(result)
    for loop in {job.loop for job in jobs}:
        deliver_all([job for job in jobs if job.loop is loop], loop)
