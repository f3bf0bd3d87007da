"""A wall clock that can be set, for the whole process; the monotonic one goes on as it does on a real machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from statestore.timestamps import nanoseconds

_time_ns: Final = time.time_ns
DAY: Final = timedelta(days=1)


class WallClock:
    """What `time.time` and `time.time_ns` tell."""

    def __init__(self) -> None:
        self._ahead = 0
        self._frozen: int | None = None

    def set(self, by: timedelta) -> None:
        """Set it forward, or back, from what the machine's clock shows."""
        self._ahead = int(by.total_seconds()) * 1_000_000_000

    def freeze(self) -> None:
        """Have it stand still."""
        self._frozen = self.now_ns()

    def freeze_at(self, moment: str) -> None:
        """Have it stand still at a moment, given as RFC 3339 text."""
        self._frozen = nanoseconds(moment)

    def now_ns(self) -> int:
        return _time_ns() + self._ahead if self._frozen is None else self._frozen


@contextmanager
def wall_clock() -> Iterator[WallClock]:
    """A clock that everybody in this process reads, while the block lasts."""
    clock = WallClock()
    originals = time.time_ns, time.time
    time.time_ns, time.time = clock.now_ns, lambda: clock.now_ns() / 1e9
    try:
        yield clock
    finally:
        time.time_ns, time.time = originals
