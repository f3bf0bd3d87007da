"""What ``statestore ls`` costs, as a whole process, beside importing what any such program is made of."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.sqlite.filling import fill
from benchmarks.timing import Result, Timed, compare
from statestore import StateStore

TURNS = 25
FLOOR = "import typer, rich, sqlite3"


def run(place: Path) -> Iterator[Result]:
    """The newest sessions of a large store: into a pipe, on a terminal, and from files with a warm index."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPYCACHEPREFIX": str(place / "compiled"), "TERM": "xterm-256color"}  # as after an install
    floor = _process(environment, "-c", FLOOR)
    fill(place / "state.db", 100_000, 1)
    listing = ("-m", "statestore", "--store", str(place / "state.db"), "ls")
    yield compare("ls of 100,000 sessions", 2.0, _process(environment, *listing), FLOOR, floor, turns=TURNS)
    on_screen = _process(environment, *listing, terminal=True)
    yield compare("ls of 100,000 sessions, on a terminal", 2.0, on_screen, FLOOR, floor, turns=TURNS)
    fill(place / "state", 5_000, 1)
    with StateStore.open(place / "state") as store:
        store.list_sessions(limit=1)  # warms the index, which who only looks leaves as it is
    listing = ("-m", "statestore", "--store", str(place / "state"), "ls")
    yield compare(
        "ls of 5,000 session files, with a warm index", 3.0, _process(environment, *listing), FLOOR, floor, turns=TURNS
    )


def _process(environment: dict[str, str], *arguments: str, terminal: bool = False) -> Timed:
    """The time of a whole process, from its start to its end."""

    def timed_run() -> float:
        ours, theirs = pty.openpty() if terminal else os.pipe()
        reader = threading.Thread(target=_read_to_the_end, args=(ours,))
        reader.start()
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=theirs, env=environment, check=True)
        seconds = time.perf_counter() - start
        os.close(theirs)
        reader.join()
        os.close(ours)
        return seconds

    return timed_run


def _read_to_the_end(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1 << 16):
            pass
    except OSError:  # how a terminal ends
        return
