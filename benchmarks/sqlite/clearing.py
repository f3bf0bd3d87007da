"""Pruning 10,000 sessions to 100, and how much room the records take."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.sqlite.bare import Bare
from benchmarks.sqlite.filling import fill
from benchmarks.timing import Result, compare
from statestore import PruneConfig, StateStore

SESSIONS = 10_000
KEPT = 100
EXCHANGES = 5


def run(place: Path) -> Iterator[Result]:
    full = place / "full.db"
    fill(full, SESSIONS, EXCHANGES)
    bare = Bare(place / "bare.db")
    with closing(bare.connection) as connection:
        connection.execute("BEGIN")
        for number in range(SESSIONS):
            bare.create(number)
        with closing(sqlite3.connect(full)) as source:
            connection.executemany("INSERT INTO records VALUES (?, ?, ?)", source.execute("SELECT * FROM records"))
        connection.execute("COMMIT")

    def prune() -> float:
        path = _copied(full, place / "pruned.db")
        with StateStore.open(path) as store:
            start = time.perf_counter()
            assert store.prune_sessions(PruneConfig(max_sessions=KEPT, ttl_hours=0)) == SESSIONS - KEPT
            return time.perf_counter() - start

    def delete() -> float:
        path = _copied(place / "bare.db", place / "deleted.db")
        doomed = range(SESSIONS - KEPT)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=FULL")
            start = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            ranges = ((number << 32, (number + 1) << 32) for number in doomed)
            connection.executemany("DELETE FROM records WHERE place >= ? AND place < ?", ranges)
            connection.executemany("DELETE FROM sessions WHERE number = ?", ((number,) for number in doomed))
            connection.execute("COMMIT")
            return time.perf_counter() - start

    floor = "one transaction of bare DELETEs by executemany"
    yield compare("prune 10,000 sessions to 100", 1.6, prune, floor, delete, turns=7)


def _copied(source: Path, to: Path) -> Path:
    """A fresh copy that is on the disk, so that nobody waits for that."""
    shutil.copy(source, to)
    os.sync()
    return to
