"""A server that is far away: calls are counted, and those that wait for it at the same time share one round trip."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from hooked import HookedEngine
from statestore.engine import Change, Outcome, RunsIn
from statestore.engines.memory import MemoryEngine

_DISTANCE: Final = 0.005
"""Seconds that a round trip takes."""


class FarEngine(HookedEngine):
    """An engine of the event loop: near until it leaves. From then on each answer takes its time, and is counted."""

    runs_in: RunsIn = "loop"

    def __init__(self) -> None:
        super().__init__(MemoryEngine())
        self._is_far = False
        self._arrival: asyncio.Event | None = None
        self._waiting = 0
        self.forget()

    def leave(self) -> None:
        """Be far away, and begin to count."""
        self._is_far = True
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.asked: Counter[str] = Counter()
        self.round_trips = 0
        self.most_at_once = 0
        self.records_read = 0

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not callable(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._travel(name)
            answer = await found(*args, **kwargs)
            self.records_read += len(answer.records.numbering.in_order()) if hasattr(answer, "records") else 0
            return answer

        return call

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        await self._travel("commit")
        return await super().commit(batch)

    async def _travel(self, name: str) -> None:
        self.asked[name] += 1
        if not self._is_far:
            return
        if self._arrival is None:
            self.round_trips += 1
            self._arrival = asyncio.Event()
            asyncio.get_running_loop().call_later(_DISTANCE, self._arrive)
        self._waiting += 1
        self.most_at_once = max(self.most_at_once, self._waiting)
        try:
            await self._arrival.wait()
        finally:
            self._waiting -= 1

    def _arrive(self) -> None:
        assert self._arrival is not None
        self._arrival.set()
        self._arrival = None
