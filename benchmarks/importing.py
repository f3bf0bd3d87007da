"""What ``import statestore`` costs, in milliseconds over ``import msgspec``."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks.timing import Result

TURNS = 25


def run() -> Iterator[Result]:
    """One figure: the difference of two medians of whole processes."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory(prefix="statestore-bench-") as compiled:  # as after an install: compiled once
        yield _measured(environment | {"PYTHONPYCACHEPREFIX": compiled})


def _measured(environment: dict[str, str]) -> Result:
    times: dict[str, list[float]] = {"msgspec": [], "statestore": []}
    for turn in range(TURNS + 2):
        for module, seconds in times.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", f"import {module}"], check=True, env=environment)
            if turn >= 2:
                seconds.append(time.perf_counter() - start)
    ours, floor = statistics.median(times["statestore"]), statistics.median(times["msgspec"])
    return Result("import statestore", 25.0, "import msgspec", ours, floor, (ours - floor) * 1000, "ms more")
