"""Measuring two things turn by turn, so that a noisy machine disturbs both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WARM_UP = 3
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

    @classmethod
    def of(cls, name: str, bar: float, floor_name: str, pairs: Sequence[tuple[float, float]]) -> Result:
        """The ratio of two medians: of ours, and of the floor's."""
        seconds = statistics.median(ours for ours, _ in pairs)
        floor_seconds = statistics.median(floor for _, floor in pairs)
        return cls(name, bar, floor_name, seconds, floor_seconds, seconds / floor_seconds)

    @property
    def is_met(self) -> bool:
        return self.ratio <= self.bar

    def __str__(self) -> str:
        line = f"{self.name:<60}{self.ratio:9.2f} {self.unit:<3} (bar {self.bar:g}){'' if self.is_met else '  MISSED'}"
        if not self.floor_name:
            return line
        return f"{line}  {self.seconds * 1e6:,.0f} against {self.floor_seconds * 1e6:,.0f} us: {self.floor_name}"


def timed(action: Callable[[], object]) -> Timed:
    """An action whose whole duration counts."""

    def run() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return run


def compare(name: str, bar: float, ours: Timed, floor_name: str, floor: Timed, *, turns: int) -> Result:
    """The ratio of two medians, measured in turns; the first turns warm up and do not count."""
    pairs: list[tuple[float, float]] = []
    for turn in range(turns + WARM_UP):
        pair = (ours(), floor()) if turn % 2 else tuple(reversed((floor(), ours())))
        if turn >= WARM_UP:
            pairs.append(pair)
    return Result.of(name, bar, floor_name, pairs)


def spread(name: str, bar: float, cases: dict[str, Timed], *, turns: int) -> Result:
    """The slowest of several medians beside the fastest, measured in turns."""
    times: dict[str, list[float]] = {case: [] for case in cases}
    for turn in range(turns + WARM_UP):
        for case, action in cases.items():
            seconds = action()
            if turn >= WARM_UP:
                times[case].append(seconds)
    medians = {case: statistics.median(found) for case, found in times.items()}
    slowest, fastest = max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
    ratio = medians[slowest] / medians[fastest]
    return Result(f"{name}: {slowest}", bar, fastest, medians[slowest], medians[fastest], ratio)
