"""A few threads for calls that block."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Coroutine
from queue import SimpleQueue
from typing import Any, TypeVar

from statestore.bridge.jobs import Job, deliver_all
from statestore.errors import StoreUnavailable
from statestore.host import step
from statestore.threads import started

T = TypeVar("T")
_Queue = SimpleQueue[tuple[Job, Coroutine[Any, Any, Any]] | None]


class Workers:
    """Threads that take calls from one queue, started as they are needed, up to a number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._queue: _Queue = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._queueing = threading.Lock()
        """Several loops may use a store."""
        weakref.finalize(self, _stop, self._queue, self._threads)  # for a store that nobody closed

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that never suspends in one of the threads."""
        job = Job()
        try:
            self._hand_over(job, coroutine)
        except StoreUnavailable:
            coroutine.close()
            raise
        try:
            return await job.result(withdrawn=coroutine.close)
        finally:
            with self._queueing:
                self._busy -= 1

    def _hand_over(self, job: Job, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Queue a call for a thread that is there, or is started for it."""
        with self._queueing:
            if self._busy >= len(self._threads) and len(self._threads) < self._most:
                try:
                    self._threads.append(started("statestore-worker", _work, self._queue))
                except StoreUnavailable:
                    if not self._threads:
                        raise
            self._busy += 1
            self._queue.put((job, coroutine))

    def stop(self) -> None:
        """Let the threads end when they have done what is queued."""
        with self._queueing:
            _stop(self._queue, self._threads)


def _work(queue: _Queue) -> None:
    while (item := queue.get()) is not None:
        job, coroutine = item
        if job.claim():
            try:
                job.succeed(step(coroutine))
            except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
                job.fail(error)
            deliver_all((job,), job.loop)
        del item, job, coroutine


def _stop(queue: _Queue, threads: list[threading.Thread]) -> None:
    for _ in threads:
        queue.put(None)
    threads.clear()
