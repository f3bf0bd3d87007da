"""Where the store's coroutines run in an event loop. The only module that mixes threads and loops.

Engines that do I/O without being asynchronous (files, SQLite) are handed to a few worker threads. A call that
is cancelled before a worker took it never happens; one that a worker has begun is waited for, so that
whoever cancelled it meets it either wholly done or not at all.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from queue import SimpleQueue
from typing import Any, Final, TypeVar

from statestore.engine import AtomicScope, Change, DocumentQuery, Engine, Outcome, RunsIn, SessionQuery
from statestore.errors import StoreClosed
from statestore.host import Host, given_turn, step
from statestore.session import Session
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SessionSummary, StoredSession

T = TypeVar("T")
WORKERS: Final = 8


class _Job:
    """One engine call on its way through a worker thread."""

    __slots__ = ("_claim", "_coroutine", "_error", "_loop", "_result", "_waiter", "future", "is_delivered")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._coroutine = coroutine
        self._claim = threading.Lock()
        self._result: Any = None
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        self.future: asyncio.Future[Any] = self._loop.create_future()
        self.is_delivered = False

    def claim(self) -> bool:
        """Whether it is the caller's to run, or to withdraw; only the first one to ask hears yes."""
        return self._claim.acquire(blocking=False)

    def run(self) -> None:
        """In a worker: do the work and send the outcome to the loop."""
        if not self.claim():
            return
        try:
            self._result = step(self._coroutine)
        except BaseException as error:  # noqa: BLE001 - carried to the caller, whatever it is
            self._error = error
        with suppress(RuntimeError):  # the loop was closed meanwhile: nobody is left to be told
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self.is_delivered = True
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
        elif not self.future.done():
            if self._error is None:
                self.future.set_result(self._result)
            else:
                self.future.set_exception(self._error)

    def withdraw(self) -> bool:
        """In the loop: whether the work could be stopped before it began."""
        if not self.claim():
            return False
        self._coroutine.close()
        return True

    async def finished(self) -> None:
        """In the loop: wait for work that can no longer be stopped, however often we are cancelled."""
        while not self.is_delivered:
            self._waiter = self._loop.create_future()
            with suppress(asyncio.CancelledError):
                await self._waiter


class _Workers:
    """A few threads that take jobs from one queue, started as they are needed."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._busy = 0
        self._process = os.getpid()
        weakref.finalize(self, _stop, self._jobs, self._threads)  # for a store that nobody closed

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if os.getpid() != self._process:
            coroutine.close()
            raise StoreClosed("this store was opened before a fork: open one of its own in the child process")
        self._busy += 1
        if self._busy > len(self._threads) and len(self._threads) < WORKERS:
            thread = threading.Thread(target=_work, args=(self._jobs,), name="statestore-worker", daemon=True)
            self._threads.append(thread)
            thread.start()
        job = _Job(coroutine)
        self._jobs.put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if not job.withdraw():
                await job.finished()
            raise
        finally:
            self._busy -= 1

    def stop(self) -> None:
        """Let the threads end when they have done what is queued."""
        _stop(self._jobs, self._threads)


def _work(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job


def _stop(jobs: SimpleQueue[_Job | None], threads: list[threading.Thread]) -> None:
    for _ in threads:
        jobs.put(None)
    threads.clear()


class WorkerEngine:
    """An engine that blocks, made fit for an event loop."""

    runs_in: RunsIn = "loop"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._workers = _Workers()
        self.atomic_scope: AtomicScope = engine.atomic_scope

    @property
    def url(self) -> str:
        return self._engine.url

    async def open(self) -> None:
        try:
            await self._workers.run(self._engine.open())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        try:
            await self._workers.run(self._engine.close())
        except asyncio.CancelledError:
            step(self._engine.close())  # it may have been withdrawn; closing twice is closing once
            raise
        finally:
            self._workers.stop()

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        return await self._workers.run(self._engine.commit(batch))

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        return await self._workers.run(self._engine.read_session(session_id, after=after, before=before, last=last))

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return await self._workers.run(self._engine.list_sessions(query))

    async def count_sessions(self, query: SessionQuery) -> int:
        return await self._workers.run(self._engine.count_sessions(query))

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        return await self._workers.run(self._engine.get_document(category, name, kind))

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        return await self._workers.run(self._engine.list_documents(query))

    async def list_categories(self, prefix: str = "") -> list[str]:
        return await self._workers.run(self._engine.list_categories(prefix))

    async def check(self) -> list[Problem]:
        return await self._workers.run(self._engine.check())


class _LoopTurn(asyncio.Lock):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop


class LoopHost(Host):
    """Runs the store in the event loop that opened it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = WorkerEngine(engine) if engine.runs_in == "worker" else engine
        self._tasks: set[asyncio.Task[None]] = set()

    def turn(self, session: Session) -> AbstractAsyncContextManager[None]:
        loop = asyncio.get_running_loop()
        return given_turn(
            session, lambda turn: isinstance(turn, _LoopTurn) and turn.loop is loop, lambda: _LoopTurn(loop)
        )

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(work(), name="statestore-background")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks)
