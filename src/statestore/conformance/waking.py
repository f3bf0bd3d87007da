"""Watchers that are woken: nobody who waits for a change sleeps through it."""

from __future__ import annotations

import time
from typing import ClassVar, cast

from statestore.conformance.bench import Bench
from statestore.conformance.changes import appended, created, user
from statestore.conformance.contract import Contract, offered
from statestore.engine import Engine, Wakes


class WakeCases(Contract):
    """Waiting for changes."""

    longest_wait: ClassVar[float] = 30.0
    """Seconds that nobody has to wait who is woken."""

    @offered("wake")
    async def test_a_change_wakes_who_waits_for_it(self, bench: Bench) -> None:
        """Whether it is made before the wait begins or after it, by this engine or by another one."""
        await bench.commit(created("s"))
        for engine in (bench.engine, (await bench.another()).engine) * 3:
            cursor = await bench.watching.change_cursor()

            async def wait(cursor: str = cursor) -> None:
                await cast("Wakes", bench.engine).wait_for_changes(cursor, self.longest_wait)

            async def change(engine: Engine = engine) -> None:
                await engine.commit([appended("s", user("wake up"))])

            began = time.monotonic()
            await bench.together(wait, change)
            assert time.monotonic() - began < self.longest_wait / 2

    @offered("wake")
    async def test_a_wait_for_nothing_ends(self, bench: Bench) -> None:
        """It takes about as long as was asked for, however often it is tried."""
        cursor = await bench.watching.change_cursor()
        for _ in range(3):
            await cast("Wakes", bench.engine).wait_for_changes(cursor, 0.01)
        assert (await bench.watching.read_changes(cursor)).notices == []
