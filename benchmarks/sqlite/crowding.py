"""Eight processes that append to one session: how much they get done, and how long one has to wait."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from benchmarks.sqlite.bare import MESSAGE
from benchmarks.timing import Result
from statestore import AgentResponse, Session, StateStore, UserMessage

PROCESSES = 8
APPENDS = 2_000
TURNS = 3


def run(place: Path) -> Iterator[Result]:
    context = multiprocessing.get_context("spawn")
    pairs: list[tuple[float, float]] = []
    waits: list[float] = []
    for turn in range(TURNS):
        alone, _ = _contest(context, place / f"alone-{turn}.db", 1)
        together, wait = _contest(context, place / f"together-{turn}.db", PROCESSES)
        pairs.append((together, alone))
        waits.append(wait)
    yield Result.of("8 processes on one session: time an exchange", 1 / 0.8, "one process", pairs)
    wait = statistics.median(waits)
    yield Result("8 processes on one session: longest wait", 250, "", wait, 0, wait * 1e3, "ms")


def _contest(context: Any, path: Path, processes: int) -> tuple[float, float]:
    """Seconds an exchange took, and the longest wait for one."""
    with StateStore.open(path) as store:
        store.save_session(Session("user", "shared"))
    results = context.Queue()
    barrier = context.Barrier(processes)
    each = APPENDS // processes
    workers = [context.Process(target=_append, args=(path, each, barrier, results)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    told = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    with StateStore.open(path) as store:
        (summary,) = store.list_sessions()
        assert summary.message_count == summary.response_count == each * processes
    seconds = max(ended for _, ended, _ in told) - min(began for began, _, _ in told)
    return seconds / (each * processes), max(wait for _, _, wait in told)


def _append(path: Path, times: int, barrier: Barrier, results: Any) -> None:
    with StateStore.open(path) as store:
        store.load_session("shared")
        barrier.wait()
        began = time.perf_counter()
        longest = 0.0
        for _ in range(times):
            start = time.perf_counter()
            store.append("shared", UserMessage(MESSAGE), AgentResponse(MESSAGE))
            longest = max(longest, time.perf_counter() - start)
        results.put((began, time.perf_counter(), longest))
