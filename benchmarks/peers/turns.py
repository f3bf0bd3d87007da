"""Taking turns: every store does a job once in each turn, in an order of its own; medians come out."""

from __future__ import annotations

import gc
import os
import random
import statistics
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from benchmarks.peers.entries import Entry


class Job(NamedTuple):
    """What one store does once in each turn, and tells the seconds of."""

    entry: Entry
    work: str
    action: Callable[[Entry, int], Awaitable[float]]


async def in_turns(jobs: list[Job], turns: int, *, warm: int) -> dict[tuple[str, str], float]:
    """The median of each store and work. Every turn has its own order; before each job all that is dirty is flushed."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    shuffled = random.Random(turns)
    gc.collect()
    gc.freeze()  # what one store has loaded does not lengthen another's garbage collections
    for turn in range(turns + warm):
        for job in shuffled.sample(jobs, len(jobs)):
            figures = job.entry.figures
            if job.work in figures.errors:
                continue
            os.sync()
            seconds = await job.entry.attempt(job.work, lambda job=job, turn=turn: job.action(job.entry, turn))
            if seconds is not None and turn >= warm:
                times[figures.name, job.work].append(seconds)
    gc.unfreeze()
    able = [(job.entry.figures.name, job.work) for job in jobs if job.work not in job.entry.figures.errors]
    return {key: statistics.median(times[key]) for key in able}


def of_store(medians: dict[tuple[str, str], float], entry: Entry, works: dict[int, str]) -> dict[int, float]:
    """The medians of one store's works, by the number that each has; what failed is left out."""
    found = {number: medians.get((entry.figures.name, work)) for number, work in works.items()}
    return {number: seconds for number, seconds in found.items() if seconds is not None}
