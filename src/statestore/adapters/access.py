"""A way to a store that an adapter was given: one that was lent, or a URL to open; who opened it closes it.

Adapters are written once, as ``async def`` functions of a store. `Access.run` awaits such a function in an event loop,
`Access.call` runs it to its end in plain code. Nothing blocks a loop: a plain store is handed to a thread.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from statestore.bridge import WorkerEngine
from statestore.errors import InvalidValue, NotSupported, StoreClosed
from statestore.host import step
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of, stepped_store
from statestore.store.plain import StateStore
from statestore.store.sessions import AsyncSessions

T = TypeVar("T")
AnyStore = AsyncStateStore | StateStore
Target = AnyStore | str | os.PathLike[str]
Work = Callable[[AsyncStateStore], Coroutine[Any, Any, T]]


class Access:
    """The store behind an adapter.

    ``opens`` says which face a URL is opened with, on first use: ``async`` for contracts that are asynchronous
    throughout, ``plain`` for those that have plain methods too.
    """

    def __init__(self, target: Target, *, opens: Literal["async", "plain"]) -> None:
        if not isinstance(target, (AsyncStateStore, StateStore, str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"give an open store, or a URL or path to open one, not {type(target).__name__}")
        self._target = target
        self._opens = opens
        self._lock = threading.Lock()
        self._opening: asyncio.Future[AsyncStateStore] | None = None
        self._store: AnyStore | None = target if isinstance(target, (AsyncStateStore, StateStore)) else None
        self._is_ours = self._store is None
        self._is_closed = False
        self._loop = _running_loop() if isinstance(target, AsyncStateStore) else None

    async def run(self, work: Work[T]) -> T:
        """In an event loop: do something with the store."""
        self._leave_closed_loop()
        store = self._store or await self._opened()
        if isinstance(store, AsyncStateStore):
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            return await work(store)
        stepped = stepped_store(store)
        return await _in_a_thread(lambda: step(work(stepped)))

    def call(self, work: Work[T]) -> T:
        """In plain code: do something with the store."""
        store = self._opened_plainly()
        if isinstance(store, StateStore):
            return step(work(stepped_store(store)))
        if self._loop is None or _running_loop() is not None:
            raise NotSupported(
                "a plain method cannot wait for an AsyncStateStore here: call its asynchronous twin, or give the "
                "adapter a StateStore"
            )
        return asyncio.run_coroutine_threadsafe(work(store), self._loop).result()

    async def aclose(self) -> None:
        """Close the store if it was opened here."""
        self._leave_closed_loop()
        if self._opening is not None and not self._opening.done():
            await asyncio.wait([self._opening])
        if (store := self._taken_leave_of()) is None:
            return
        if isinstance(store, AsyncStateStore):
            await store.close()
        else:
            await asyncio.to_thread(store.close)

    def close(self) -> None:
        """Close the store if it was opened here, from plain code."""
        if self._is_ours and isinstance(self._store, AsyncStateStore) and _running_loop() is not None:
            raise NotSupported("a plain close cannot wait for an AsyncStateStore here: await its asynchronous twin")
        store = self._taken_leave_of()
        if isinstance(store, StateStore):
            store.close()
        elif store is not None and self._loop is not None and self._loop.is_running():
            asyncio.run_coroutine_threadsafe(store.close(), self._loop).result()
        elif store is not None:
            asyncio.run(store.close())

    def _taken_leave_of(self) -> AnyStore | None:
        """The store to close, if it is ours to close."""
        with self._lock:
            store, self._is_closed = self._store, self._is_closed or self._is_ours
            if not self._is_ours:
                return None
            self._store = None
            return store

    def _leave_closed_loop(self) -> None:
        """Connections to servers end with their loop: what was opened here in one that is over is opened anew."""
        is_over = self._is_ours and self._loop is not None and self._loop.is_closed()
        if is_over and self._store is not None and _is_bound_to_its_loop(self._store):
            self._store = self._opening = self._loop = None

    async def _opened(self) -> AnyStore:
        if self._opens == "plain":
            return await asyncio.to_thread(self._opened_plainly)
        self._check_is_open()
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> AsyncStateStore:
        assert isinstance(self._target, (str, os.PathLike))
        try:
            self._store = store = await AsyncStateStore.open(self._target)
        except BaseException:
            self._opening = None  # the next one tries again
            raise
        return store

    def _opened_plainly(self) -> AnyStore:
        with self._lock:
            if self._store is None:
                self._check_is_open()
                assert isinstance(self._target, (str, os.PathLike))
                self._store = StateStore.open(self._target)
            return self._store

    def _check_is_open(self) -> None:
        if self._is_closed:
            raise StoreClosed(f"{self._target} was closed")


class ClosesItsStore:
    """An adapter for event loops: ``await adapter.close()`` closes what it opened, and so does ``async with``."""

    _access: Access

    async def close(self) -> None:
        """Close the store, if it was opened here."""
        await self._access.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class ClosesEitherWay:
    """An adapter for plain code and event loops: `close` and `aclose` close what it opened, and so does either with."""

    _access: Access

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self._access.close()

    async def aclose(self) -> None:
        """Close the store, if it was opened here."""
        await self._access.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


def sessions_of(store: AsyncStateStore, user_id: str | None) -> AsyncSessions:
    """The sessions that an adapter may touch: everybody's, or a user's alone."""
    return store if user_id is None else store.for_user(user_id)


def _is_bound_to_its_loop(store: AnyStore) -> bool:
    """Whether a store cannot be used in another loop than the one that opened it: threads, and memory, can."""
    engine = engine_of(store)
    return engine.runs_in == "loop" and not isinstance(engine, WorkerEngine)


async def _in_a_thread(call: Callable[[], T]) -> T:
    """What a call gives back; if cancelled, it is over before that is felt: nothing happens behind one's back."""
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # who was cancelled need not fetch it
        raise


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
