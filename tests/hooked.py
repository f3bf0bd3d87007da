"""Engines that fail, or let something happen, at a chosen moment. Under each is a real engine that does the work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from statestore import Engine, StoreUnavailable
from statestore.engine import Change, Outcome


class HookedEngine:
    """Passes everything on; ``before`` and ``after`` are called around the next commits, and may raise."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.before: Callable[[Sequence[Change]], None] | None = None
        self.after: Callable[[Sequence[Change]], None] | None = None
        self.commits: list[Sequence[Change]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "commit_group":
            raise AttributeError(name)  # so that every commit is hooked
        return getattr(self._engine, name)

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        if self.before is not None:
            self.before(batch)
        outcomes = await self._engine.commit(batch)
        self.commits.append(batch)
        if self.after is not None:
            self.after(batch)
        return outcomes

    def fail_once(self, *, after: bool) -> None:
        """Let the next commit fail, before it happened or after it did."""

        def fail(_: Sequence[Change]) -> None:
            self.before = self.after = None
            raise StoreUnavailable("the connection was lost")

        if after:
            self.after = fail
        else:
            self.before = fail


class CountingEngine(HookedEngine):
    """Notes what it is asked for."""

    def __init__(self, engine: Engine, atomic_scope: str = "store") -> None:
        super().__init__(engine)
        self.atomic_scope = atomic_scope
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if callable(found):
            self.asked[name] += 1
        return found


class SlowEngine(HookedEngine):
    """An engine of the event loop that takes turns with other tasks before and after it commits."""

    runs_in = "loop"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.may_commit = asyncio.Event()
        self.may_return = asyncio.Event()
        self.is_asked = asyncio.Event()
        self.has_committed = asyncio.Event()

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        self.is_asked.set()
        await self.may_commit.wait()
        outcomes = await super().commit(batch)
        self.has_committed.set()
        await self.may_return.wait()
        return outcomes

    def let_go(self) -> None:
        self.may_commit.set()
        self.may_return.set()
