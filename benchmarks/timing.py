"""Measuring two things turn by turn, so that a noisy machine disturbs both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Timed = Callable[[], float]
"""Does something once and tells how many seconds the part that counts took."""


@dataclass(frozen=True)
class Result:
    """One benchmark: what was measured, against what, and the bar it should stay under."""

    name: str
    bar: float
    floor_name: str
    seconds: float
    floor_seconds: float
    ratio: float
    unit: str = "x"

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.bar


def timed(action: Callable[[], object]) -> Timed:
    """An action whose whole duration counts."""

    def run() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return run


def compare(name: str, bar: float, ours: Timed, floor_name: str, floor: Timed, *, turns: int) -> Result:
    """The ratio of two medians, measured in turns; the first turns warm up and do not count."""
    our_times: list[float] = []
    floor_times: list[float] = []
    for turn in range(turns + 3):
        pair = (ours(), floor()) if turn % 2 else tuple(reversed((floor(), ours())))
        if turn >= 3:
            our_times.append(pair[0])
            floor_times.append(pair[1])
    seconds, floor_seconds = statistics.median(our_times), statistics.median(floor_times)
    return Result(name, bar, floor_name, seconds, floor_seconds, seconds / floor_seconds)
