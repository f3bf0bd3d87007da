"""What ``import statestore`` costs, in milliseconds over ``import msgspec``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.timing import Result

TURNS = 25


def run() -> Iterator[Result]:
    """One figure: the difference of two medians of whole processes."""
    times: dict[str, list[float]] = {"msgspec": [], "statestore": []}
    for turn in range(TURNS + 2):
        for module, seconds in times.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
            if turn >= 2:
                seconds.append(time.perf_counter() - start)
    ours, floor = statistics.median(times["statestore"]), statistics.median(times["msgspec"])
    yield Result("import statestore", 25.0, "import msgspec", ours, floor, (ours - floor) * 1000, "ms more")
