"""What a process uses, measured in windows of time; and whether that stays as it is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

WINDOWS = 24
"""Into how many windows the time of a round is divided."""
WARM_UP = 0.25
"""Which part of them does not count: caches fill, files reach their size."""
CALLS_A_YARD = 20
"""After how many calls the yardstick is used."""
MEGABYTE = 1024 * 1024

SLOWEST = 1.7
DEAREST = 1.4
"""By how much a call may take longer, and cost more processor time, in the last third than in the first: measured by a
yardstick that was used in between, so that other programs on the machine hardly matter. Whatever grows in proportion to
time is found when it has become twice what it was (processor time) or four times (waits included).
"""
RSS_GROWTH = 8 * MEGABYTE
HANDLES_GROWTH = 2
MOST_HANDLES = 32
"""How many files a process of the load may have open beyond those that it came with."""


class Window(Struct, frozen=True):
    """What one process did and used in a part of the time."""

    calls: int
    seconds: float
    """Spent in calls, by the clock on the wall and by the processor's."""
    cpu: float
    yards: int
    """How often the yardstick was used, and what that took."""
    yard_seconds: float
    yard_cpu: float
    rss: int
    handles: int
    """How many more files are open than when it began."""


class Gauge:
    """Cuts the time since a moment into windows, and measures each when it is over.

    With a directory it uses a yardstick there, now and then, to judge speed by.
    """

    def __init__(self, start: float, seconds: float, directory: Path | None = None) -> None:
        self._start = start
        self._length = seconds / WINDOWS
        self._yardstick = None if directory is None else Yardstick(directory / f"yardstick-{os.getpid()}")
        self._window = 0
        self._handles_before = _handles()  # a process that was forked has its parent's
        self.windows: list[Window] = []
        self._begin()

    def _begin(self) -> None:
        self._calls = self._yards = 0
        self._yard_seconds = self._yard_cpu = 0.0
        self._began, self._cpu = time.monotonic(), time.process_time()

    def count(self) -> bool:
        """Count one call; whether there is time for more."""
        self._calls += 1
        if self._calls % CALLS_A_YARD == 0:
            self._measure_yard()
        now = time.monotonic()
        window = min(int((now - self._start) / self._length), WINDOWS)
        if window > self._window:
            self._measure_yard()
            self._end_window()
            self._window = window
        return window < WINDOWS

    def _measure_yard(self) -> None:
        if self._yardstick is None:
            return
        seconds, cpu = time.monotonic(), time.process_time()
        self._yardstick.use()
        self._yards += 1
        self._yard_seconds += time.monotonic() - seconds
        self._yard_cpu += time.process_time() - cpu

    def _end_window(self) -> None:
        seconds = time.monotonic() - self._began - self._yard_seconds
        cpu = time.process_time() - self._cpu - self._yard_cpu
        yards = self._yards, self._yard_seconds, self._yard_cpu
        self.windows.append(Window(self._calls, seconds, cpu, *yards, _rss(), _handles() - self._handles_before))
        self._begin()


class Yardstick:
    """Work that is always the same: some JSON, a small file, down to the disk, renamed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def use(self) -> None:
        """Do it once."""
        text = b""
        for _ in range(20):
            text = json.dumps(json.loads(_JSON)).encode()
        fd = os.open(f"{self._path}-new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, text)
        os.fsync(fd)
        os.close(fd)
        os.rename(f"{self._path}-new", self._path)


_JSON = json.dumps([{"number": number, "text": "x" * 30} for number in range(40)])


def _rss() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def check_few_handles(windows: Sequence[Window]) -> None:
    """Raise if a process has many files open at once."""
    assert max(window.handles for window in windows) <= MOST_HANDLES, f"{[window.handles for window in windows]}"


def check_handles(windows: Sequence[Window]) -> None:
    """Raise if a process has more files open at the end than it had after a while."""
    first, last = _thirds([window.handles for window in windows])
    assert max(last) <= max(first) + HANDLES_GROWTH, f"file handles: {[window.handles for window in windows]}"


def check_memory(windows: Sequence[Window]) -> None:
    """Raise if a process goes on taking memory."""
    first, last = _thirds([window.rss for window in windows])
    sizes = [window.rss // MEGABYTE for window in windows]
    assert median(last) <= median(first) + RSS_GROWTH, f"resident megabytes: {sizes}"


def check_speed(windows: Sequence[Window]) -> None:
    """Raise if calls become slower, by the clock or in processor time, each in yards."""
    waits = [(window.seconds / window.calls) / (window.yard_seconds / window.yards) for window in windows]
    first, last = _thirds(waits)
    assert median(last) <= SLOWEST * median(first), f"time a call, in yards: {[round(it, 2) for it in waits]}"
    costs = [(window.cpu / window.calls) / (window.yard_cpu / window.yards) for window in windows]
    first, last = _thirds(costs)
    assert median(last) <= DEAREST * median(first), f"processor time a call, in yards: {[round(it, 2) for it in costs]}"


def _thirds(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The first and the last third of what was measured after the warm-up."""
    warm = values[int(len(values) * WARM_UP) :]
    third = len(warm) // 3
    assert third, f"too little was measured: {values}"
    return warm[:third], warm[-third:]
