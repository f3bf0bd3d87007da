"""How much room is taken: on disk, and in memory while much is listed, searched and paged through."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from benchmarks.sqlite.filling import fill, lengthen
from benchmarks.timing import Result
from statestore import StateStore

LIST_AND_SEARCH = """
import sys
from statestore import StateStore
store = StateStore.open(sys.argv[1])
assert len(store.list_sessions()) == 100_000
assert len(store.search_sessions("fox", limit=50)) == 50
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""
PAGE_BACK = """
import sys
from statestore import StateStore
store = StateStore.open(sys.argv[1])
before, seen = None, 0
while entries := store.timeline("long", before=before, limit=1000):
    before, seen = entries[0].seq, seen + len(entries)
assert seen == 1_000_000
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def run(place: Path) -> Iterator[Result]:
    yield _on_disk(place / "disk.db")
    fill(place / "many.db", 100_000, 1)
    yield _in_memory("memory: list and search 100,000 sessions", 100, LIST_AND_SEARCH, place / "many.db")
    with StateStore.open(place / "long.db", durability="relaxed") as store:
        lengthen(store, "long", 500_000)
    yield _in_memory("memory: page through 1,000,000 records", 50, PAGE_BACK, place / "long.db")


def _on_disk(path: Path) -> Result:
    fill(path, 1000, 50)
    with closing(sqlite3.connect(path)) as connection:
        (text,) = connection.execute("SELECT sum(length(CAST(body AS BLOB))) FROM records").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = path.stat().st_size
    return Result("bytes on disk", 1.4, "the JSON of the records", size / 1e6, text / 1e6, size / text)


def _in_memory(name: str, bar: float, program: str, path: Path) -> Result:
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True)
    megabytes = int(done.stdout) / 1024
    return Result(name, bar, "", megabytes / 1e6, 0, megabytes, "MB")
