"""Searching in 100,000 messages, once they are indexed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.sqlite.bare import MESSAGE
from benchmarks.sqlite.filling import fill
from benchmarks.timing import Result, timed
from statestore import StateStore

SESSIONS = 1_000
EXCHANGES = 50


def run(place: Path) -> Iterator[Result]:
    fill(place / "state.db", SESSIONS, EXCHANGES, _text)
    with StateStore.open(place / "state.db") as store:
        first = timed(lambda: store.search_sessions("rare"))()
        yield Result("first search: index 100,000 messages", 10_000, "", first, 0, first * 1e3, "ms")
        for word, count, bar in (("rare", 100, 2.0), ("common", 50_000, 150.0)):
            assert len(store.search_sessions(word, limit=60_000)) == count
            search = timed(partial(store.search_sessions, word))
            seconds = statistics.median(search() for _ in range(21))
            yield Result(f"search for a word in {count:,} of 100,000", bar, "", seconds, 0, seconds * 1e3, "ms")


def _text(number: int, exchange: int) -> str:
    position = number * EXCHANGES + exchange
    return f"{'rare ' if position % 500 == 0 else ''}common {MESSAGE}"
