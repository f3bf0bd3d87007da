"""Sessions of several lengths: filled, loaded whole, and appended to by one task."""

from __future__ import annotations

import time
from functools import partial

from benchmarks.peers.entries import TEXTS, Entry, Tell, replied
from benchmarks.peers.figures import Effort
from benchmarks.peers.turns import Job, in_turns, of_store


async def fill(entries: list[Entry], effort: Effort, tell: Tell) -> None:
    """Make the sessions that are loaded and appended to. A store that fails at one length goes on with the others."""
    for entry in entries:
        for length in effort.lengths:
            tell(f"{length:,} exchanges: filling {entry.figures.name}")
            count = -(-(effort.appends + effort.warm) // appends_to_each(length))
            names = [f"{length}-{number}" for number in range(count)]
            await entry.attempt(f"append {length}", partial(entry.fill, names, length))


def appends_to_each(length: int) -> int:
    """How many appends one session takes before the next is used, so that it stays about that long."""
    return max(5, length // 5)


async def measure_append(entries: list[Entry], effort: Effort, tell: Tell) -> None:
    """One more exchange, at each length."""
    works = {length: f"append {length}" for length in effort.lengths}
    tell("append")
    jobs = [Job(entry, work, partial(_append, length)) for entry in entries for length, work in works.items()]
    medians = await in_turns(jobs, effort.appends, warm=effort.warm)
    for entry in entries:
        entry.figures.append = of_store(medians, entry, works)


async def _append(length: int, entry: Entry, turn: int) -> float:
    session = f"{length}-{turn // appends_to_each(length)}"
    start = time.perf_counter()
    reply = entry.peer.append(session, *TEXTS)
    if reply is not None:
        await reply
    return time.perf_counter() - start


async def measure_load(entries: list[Entry], effort: Effort, tell: Tell) -> None:
    """All of a session, at each length, before anything is appended to it."""
    works = {length: f"load {length}" for length in effort.loaded}
    tell("load")
    jobs = [
        Job(entry, work, partial(_load, length))
        for entry in entries
        for length, work in works.items()
        if f"append {length}" not in entry.figures.errors
    ]
    medians = await in_turns(jobs, effort.loads, warm=effort.warm)
    for entry in entries:
        entry.figures.load = of_store(medians, entry, works)


async def _load(length: int, entry: Entry, _: int) -> float:
    start = time.perf_counter()
    count = await replied(entry.peer.load(f"{length}-0"))
    seconds = time.perf_counter() - start
    assert count == 2 * length, f"loaded {count} messages, not {2 * length}"
    return seconds
