"""The two faces of the store, so that a case is written once, as ``async def``, and run in both.

The plain face is the real `StateStore`, its methods wrapped so that they can be awaited; the asynchronous one is
`AsyncStateStore` in an event loop, with the engine behind the same bridge that users get.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing
from typing import Any, Final, Literal, Protocol, TypeVar, cast

from statestore.bridge import LoopHost, LoopThreadEngine
from statestore.engine import Engine
from statestore.host import PlainHost, step
from statestore.notices import Notice
from statestore.store.async_store import AsyncStateStore
from statestore.store.batch import Batch, BatchBlock
from statestore.store.plain import StateStore, UserStore

T = TypeVar("T")
FaceName = Literal["plain", "async"]
FACES: Final[tuple[FaceName, ...]] = ("plain", "async")
Work = Callable[[], Coroutine[Any, Any, T]]


class Face(Protocol):
    """Where a case runs, and what it is given to work with."""

    name: FaceName

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Bring a coroutine to its end."""
        ...

    def fit(self, engine: Engine) -> Engine:
        """The engine as code in this face may await it."""
        ...

    def store_on(self, engine: Engine) -> AsyncStateStore:
        """A store over an engine that was made fit; in either face its methods are awaited."""
        ...

    async def together(self, workers: list[Work[T]]) -> list[T]:
        """Do all of this at the same time: threads in the plain face, tasks in the other."""
        ...

    async def breathe(self) -> None:
        """Let others have a turn."""
        ...

    def close(self) -> None:
        """Let go of the loop, if there is one."""
        ...


class PlainFace:
    """Everything runs straight through in the calling thread; an engine that suspends is awaited in a thread."""

    name: FaceName = "plain"

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        __tracebackhide__ = True
        return step(work)

    def fit(self, engine: Engine) -> Engine:
        return cast("Engine", LoopThreadEngine(engine)) if engine.runs_in == "loop" else engine

    def store_on(self, engine: Engine) -> AsyncStateStore:
        return cast("AsyncStateStore", _Awaitable(StateStore(PlainHost(engine))))

    async def together(self, workers: list[Work[T]]) -> list[T]:
        crew = [_Worker(work) for work in workers]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # threads change places as often as they can
        try:
            for worker in crew:
                worker.start()
            for worker in crew:
                worker.join()
        finally:
            sys.setswitchinterval(interval)
        return [worker.outcome() for worker in crew]

    async def breathe(self) -> None:
        """Threads do so without being asked."""

    def close(self) -> None:
        """There is no loop."""


class _Worker(threading.Thread):
    """One of several threads that work at the same time."""

    def __init__(self, work: Work[Any]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._result = step(self._work())
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            self._error = error

    def outcome(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result


class AsyncFace:
    """Everything runs in one event loop."""

    name: FaceName = "async"

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        __tracebackhide__ = True
        return self._runner.run(work)

    def fit(self, engine: Engine) -> Engine:
        return LoopHost(engine).engine

    def store_on(self, engine: Engine) -> AsyncStateStore:
        return AsyncStateStore(LoopHost(engine))

    async def together(self, workers: list[Work[T]]) -> list[T]:
        outcomes = await asyncio.gather(*(work() for work in workers), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return cast("list[T]", outcomes)

    async def breathe(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        self._runner.close()


def face_named(name: FaceName) -> Face:
    """A face, ready to run things."""
    return PlainFace() if name == "plain" else AsyncFace()


class _Awaitable:
    """A plain store with methods that can be awaited."""

    def __init__(self, store: StateStore | UserStore) -> None:
        self._store = store

    def for_user(self, user_id: str) -> _Awaitable:
        return _Awaitable(cast("StateStore", self._store).for_user(user_id))

    def batch(self) -> _AwaitableBatch:
        return _AwaitableBatch(cast("StateStore", self._store).batch())

    def watch(self, session_id: str | None = None, *, after: str | None = None) -> AsyncIterator[Notice]:
        return _awaited(self._store.watch(session_id, after=after))

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        if not callable(member):
            return member

        async def call(*args: Any, **kwargs: Any) -> Any:
            return member(*args, **kwargs)

        return call


async def _awaited(notices: Iterator[Notice]) -> AsyncIterator[Notice]:
    with closing(cast("Generator[Notice]", notices)):
        for notice in notices:
            yield notice


class _AwaitableBatch(AbstractAsyncContextManager[Batch]):
    def __init__(self, block: BatchBlock) -> None:
        self._block = cast("AbstractContextManager[Batch]", block)

    async def __aenter__(self) -> Batch:
        return self._block.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        self._block.__exit__(*error)
