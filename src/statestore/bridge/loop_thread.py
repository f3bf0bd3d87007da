"""An engine that lives in an event loop, for plain code: a thread runs the loop, callers wait for it."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final, cast

from statestore.engine import Engine, RunsIn
from statestore.errors import StoreClosed, StoreUnavailable
from statestore.threads import started
from statestore.waking import Sleep

NAP: Final = 0.5
"""Seconds after which a caller that waits looks up: a Ctrl-C that came just before it fell asleep did not wake it."""


class LoopThreadEngine:
    """An asynchronous engine whose calls block. It offers what the engine offers.

    The loop runs from the first call until `close`. A caller that is interrupted while it waits cancels its call and
    waits until that is over.
    """

    runs_in: RunsIn = "worker"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._process = os.getpid()
        self._scheduling = threading.Lock()
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], object] = lambda: None

    def __getattr__(self, name: str) -> Any:
        """The engine's own attribute; a method of it runs in the loop."""
        found: Any = getattr(self._engine, name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return self._run(lambda: cast("Coroutine[Any, Any, Any]", found(*args, **kwargs)))

        return call

    async def open(self) -> None:
        try:
            self._run(self._engine.open)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        if os.getpid() != self._process:
            return  # what it has is its parent's
        try:
            if self._loop is not None:  # else nothing was ever begun
                self._run(self._engine.close)
        except StoreClosed:
            return  # somebody else closed it
        finally:
            with self._scheduling:  # what was scheduled before is begun before the loop stops
                self._is_closed = True
            self._stop()

    def _run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        if os.getpid() != self._process:
            raise StoreClosed("this store was opened before a fork: open one of its own in the child process")
        return _Call(work).result(self._schedule)

    def _schedule(self, call: _Call) -> None:
        with self._scheduling:
            if self._is_closed:
                raise StoreClosed(f"{self._engine.url} was closed")
            call.begin_in(self._running_loop())

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            loop, thread = self._begun()
            self._loop = loop
            self._stop = ending = weakref.finalize(self, _end, loop, thread)  # also for a store that nobody closed
            ending.atexit = False  # what others do at the interpreter's exit may need it
        return self._loop

    def _begun(self) -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
        """A loop and the thread that runs it."""
        try:
            loop = asyncio.new_event_loop()
        except OSError as error:
            raise StoreUnavailable(f"{self._engine.url}: no event loop can be made: {error.strerror}") from error
        try:
            return loop, started("statestore-loop", _serve, loop)
        except StoreUnavailable:
            loop.close()
            raise


class _Call:
    """Something that the loop does for a thread that waits."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self._work = work
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_over = False
        self._sleep = Sleep()

    def begin_in(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop begin it."""
        self._loop = loop
        loop.call_soon_threadsafe(self._begin)

    def result(self, schedule: Callable[[_Call], None]) -> Any:
        """Have it done, and wait for what comes of it; if interrupted, cancel it and wait until it is over."""
        try:
            schedule(self)
            self._wait()
        except BaseException:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._cancel)
                self._wait()
            raise
        assert self._task is not None
        return self._task.result()

    def _wait(self) -> None:
        while not self._is_over:
            self._sleep.until_woken(NAP)

    # -- in the loop

    def _begin(self) -> None:
        if not self._is_over:
            assert self._loop is not None
            self._task = self._loop.create_task(self._worked())
            self._task.add_done_callback(self._end)

    async def _worked(self) -> Any:
        return await self._work()

    def _cancel(self) -> None:
        if self._task is None:
            self._end()  # interrupted before it was begun: it never is
        else:
            self._task.cancel()

    def _end(self, _: object = None) -> None:
        self._is_over = True
        self._sleep.wake()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(_tidy())
    finally:
        loop.close()


async def _tidy() -> None:
    """End whatever a store that nobody closed still had under way."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
        if threading.current_thread() is not thread:  # where a store that nobody closed may be collected, too
            thread.join()
