"""One way to write a test for both faces of the store: a plain body, run on `StateStore` or on `AsyncStateStore`.

`LoopStore` looks like a `StateStore`; every call runs the coroutine of the same name on one event loop that is
kept for the whole test, through the bridge that users of the asynchronous face get.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from statestore import AsyncStateStore, Batch, Engine, Notice, StateStore
from statestore.engines.files import FilesEngine
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine


class LoopStore:
    """An asynchronous store, called from plain code."""

    def __init__(self, runner: asyncio.Runner, store: Any) -> None:
        self._runner = runner
        self._store = store

    def for_user(self, user_id: str) -> LoopStore:
        return LoopStore(self._runner, self._store.for_user(user_id))

    @contextmanager
    def batch(self) -> Iterator[Batch]:
        block = self._store.batch()
        batch = self._runner.run(block.__aenter__())
        try:
            yield batch
        except BaseException as error:
            self._runner.run(block.__aexit__(type(error), error, error.__traceback__))
            raise
        self._runner.run(block.__aexit__(None, None, None))

    def watch(self, session_id: str | None = None, *, after: str | None = None) -> Iterator[Notice]:
        return self._stepped(self._store.watch(session_id, after=after))

    def _stepped(self, notices: Any) -> Iterator[Notice]:
        try:
            while True:
                yield self._runner.run(_next(notices))
        finally:
            self._runner.run(notices.aclose())

    def __enter__(self) -> LoopStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._store, name)
        if not callable(member):
            return member

        def call(*args: Any, **kwargs: Any) -> Any:
            result = member(*args, **kwargs)
            return self._runner.run(result) if inspect.iscoroutine(result) else result

        return call


async def _next(notices: Any) -> Notice:
    return await anext(notices)


class Face:
    """Opens stores, and closes them when the test is over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._runner = asyncio.Runner() if name == "async" else None
        self._stores: list[StateStore] = []

    def open(self, target: str | Path | Engine, **options: Any) -> StateStore:
        if self._runner is None:
            store = StateStore.open(target, **options)
        else:
            runner = self._runner

            async def opened() -> AsyncStateStore:
                return await AsyncStateStore.open(target, **options)

            store = cast("StateStore", LoopStore(runner, runner.run(opened())))
        self._stores.append(store)
        return store

    def close(self) -> None:
        for store in self._stores:
            store.close()
        if self._runner is not None:
            self._runner.close()


class Place:
    """Where something is stored: any number of engines may be made for it, one after the other or at once."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind = kind
        self.directory = directory
        self._memory = MemoryEngine()

    def engine(self) -> Engine:
        if self.kind == "sqlite":
            return SqliteEngine(self.directory.with_suffix(".db"))
        return FilesEngine(str(self.directory)) if self.kind == "files" else self._memory
