"""Watchers that wait in one event loop: one of them looks out for all, and wakes those whom a change may concern.

The others sleep on, and their cursors move past what is not theirs. No task runs beside them: when the one that looks
out is woken or called off, another one takes over.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from statestore.engine import Changed
from statestore.errors import StateStoreError
from statestore.host import LONGEST_PAUSE, SHORTEST_PAUSE, Watch


class _Sleeper:
    """A watcher that waits until it is called."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.called = asyncio.Event()

    def is_concerned_by(self, changed: Changed) -> bool:
        _, session_id, user_id = self.watch
        return (session_id is None or session_id in changed.sessions) and (user_id is None or user_id in changed.users)


class Lookout:
    """Where the watchers of one loop wait."""

    def __init__(self, changed_since: Callable[[str], Awaitable[Changed]]) -> None:
        self._changed_since = changed_since
        self._sleepers: set[_Sleeper] = set()
        self._is_manned = False
        self._pause = SHORTEST_PAUSE
        self._next_look = asyncio.get_running_loop().time() + self._pause

    async def wait(self, watch: Watch) -> str:
        """Wait until something may have happened that concerns a watcher; the cursor to read on from."""
        sleeper = _Sleeper(watch)
        self._sleepers.add(sleeper)
        try:
            while sleeper in self._sleepers:
                if self._is_manned:
                    await sleeper.called.wait()
                    sleeper.called.clear()
                else:
                    await self._look_out()
        finally:
            self._sleepers.discard(sleeper)
            if self._sleepers and not self._is_manned:
                next(iter(self._sleepers)).called.set()
        return sleeper.watch.cursor

    async def _look_out(self) -> None:
        """Look once for all, when it is time to."""
        now = asyncio.get_running_loop().time
        self._is_manned = True
        try:
            await asyncio.sleep(self._next_look - now())
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            equally_far: defaultdict[str, list[_Sleeper]] = defaultdict(list)
            for sleeper in self._sleepers:
                equally_far[sleeper.watch.cursor].append(sleeper)
            for cursor, sleepers in equally_far.items():
                await self._look(cursor, sleepers)
            self._next_look = now() + self._pause
        finally:
            self._is_manned = False

    async def _look(self, cursor: str, sleepers: Sequence[_Sleeper]) -> None:
        """Look what happened after a cursor, for those who have come that far."""
        try:
            changed = await self._changed_since(cursor)
        except StateStoreError:  # whoever reads on from there is told what is wrong
            for sleeper in sleepers:
                self._wake(sleeper)
            return
        if changed.cursor == cursor:
            return
        self._pause = SHORTEST_PAUSE
        for sleeper in sleepers:
            if sleeper.is_concerned_by(changed):
                self._wake(sleeper)
            else:
                sleeper.watch = sleeper.watch._replace(cursor=changed.cursor)

    def _wake(self, sleeper: _Sleeper) -> None:
        self._sleepers.discard(sleeper)
        sleeper.called.set()
