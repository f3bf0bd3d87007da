"""The host of `AsyncStateStore`: engines that block are made fit for an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar, cast
from weakref import WeakValueDictionary

from statestore.bridge.lookout import Lookout
from statestore.bridge.workers import Workers
from statestore.bridge.writer import GroupWriter
from statestore.engine import Change, Changed, Engine, GroupCommits, Outcome, PointsOut, RunsIn
from statestore.errors import StoreClosed
from statestore.host import Host, Watch, given_turn, step
from statestore.session import Session

T = TypeVar("T")

WORKERS: Final = 8
LONG_CALLS: Final = frozenset(
    ("search_sessions", "update_search_index", "check", "repair", "strays_of", "backup", "compact")
)
"""What may take as long as there is much stored. It has threads of its own, so that others need not wait for it."""
LONG_WORKERS: Final = 4


class WorkerEngine:
    """An engine that blocks, with every call handed to a thread. It offers what the engine offers."""

    runs_in: RunsIn = "loop"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._workers = Workers(WORKERS)
        self._long_workers = Workers(LONG_WORKERS)
        self._writer = GroupWriter(cast("GroupCommits", engine)) if hasattr(engine, "commit_group") else None
        self._process = os.getpid()

    def __getattr__(self, name: str) -> Any:
        """The engine's own attribute; a method of it runs in a worker."""
        found: Any = getattr(self._engine, name)
        if not callable(found):
            return found
        workers = self._long_workers if name in LONG_CALLS else self._workers

        def call(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
            self._check_process()
            return workers.run(cast("Coroutine[Any, Any, Any]", found(*args, **kwargs)))

        return call

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreClosed("this store was opened before a fork: open one of its own in the child process")

    async def run(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """Do something with the engine in a worker."""
        self._check_process()
        return await self._workers.run(work(self._engine))

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        self._check_process()
        if self._writer is None:
            return await self._workers.run(self._engine.commit(batch))
        return await self._writer.commit(batch)

    async def open(self) -> None:
        try:
            await self._workers.run(self._engine.open())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        self._check_process()
        try:
            await self._workers.run(self._engine.close())
        except asyncio.CancelledError:
            threading.Thread(target=step, args=(self._engine.close(),), name="statestore-closing").start()
            raise  # it may have been withdrawn; closing twice is closing once
        finally:
            self._workers.stop()
            self._long_workers.stop()
            if self._writer is not None:
                self._writer.stop()


class _LoopTurn(asyncio.Lock):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop


class LoopHost(Host):
    """Runs the store in the event loop that opened it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = cast("Engine", WorkerEngine(engine)) if engine.runs_in == "worker" else engine
        self._tasks: dict[asyncio.Task[None], Future[None]] = {}
        """What was spawned, each with what tells other loops and threads that it is over."""
        self._lookouts: WeakValueDictionary[asyncio.AbstractEventLoop, Lookout] = WeakValueDictionary()
        """One for each loop in which watchers wait."""

    async def run(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        engine: object = self.engine
        return await (engine.run(work) if isinstance(engine, WorkerEngine) else work(self.engine))

    def turn(self, session: Session) -> AbstractAsyncContextManager[None]:
        loop = asyncio.get_running_loop()
        return given_turn(
            session, lambda turn: isinstance(turn, _LoopTurn) and turn.loop is loop, lambda: _LoopTurn(loop)
        )

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.create_task(work(), name="statestore-background")
        self._tasks[task] = Future()
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task).set_result(None)

    async def drain(self) -> None:
        spawned = tuple(self._tasks.items())  # another loop may be ending some of them
        if ends := [asyncio.wrap_future(over) for task, over in spawned if task.get_loop().is_running()]:
            await asyncio.wait(ends)

    async def wait_for_changes(self, watch: Watch, pause: float) -> str:
        if not hasattr(self.engine, "changed_since"):
            await asyncio.sleep(pause)
            return watch.cursor
        lookout = self._lookouts.setdefault(asyncio.get_running_loop(), Lookout(self._changed_since))
        return await lookout.wait(watch)

    async def _changed_since(self, cursor: str) -> Changed:
        return await cast("PointsOut", self.engine).changed_since(cursor)
