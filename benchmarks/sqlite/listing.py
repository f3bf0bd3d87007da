"""The newest 50 of many sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.sqlite.filling import fill
from benchmarks.timing import Result, compare, timed
from statestore import StateStore


def run(place: Path) -> Iterator[Result]:
    fill(place / "few.db", 1_000, 1)
    fill(place / "many.db", 100_000, 1)
    with StateStore.open(place / "few.db") as few, StateStore.open(place / "many.db") as many:
        newest = compare(
            "newest 50 of 100,000 sessions",
            1.3,
            timed(lambda: many.list_sessions(limit=50)),
            "newest 50 of 1,000",
            timed(lambda: few.list_sessions(limit=50)),
            turns=300,
        )
    yield newest
    yield Result("newest 50 of 100,000 sessions", 0.5, "", newest.seconds, 0, newest.seconds * 1e3, "ms")
