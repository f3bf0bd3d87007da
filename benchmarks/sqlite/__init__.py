"""The SQLite engine beside the same rows through plain ``sqlite3``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sqlite import appending, clearing, crowding, footprint, listing, loading, searching
from benchmarks.timing import Result


def run() -> Iterator[Result]:
    """All benchmarks of the SQLite engine."""
    for part in (appending, crowding, loading, clearing, footprint, listing, searching):
        with tempfile.TemporaryDirectory(prefix="statestore-bench-") as place:
            yield from part.run(Path(place))
