"""Many tasks that append at once, a session each."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from benchmarks.peers.entries import TEXTS, Entry, Tell, reason, replied
from benchmarks.peers.figures import Effort
from benchmarks.peers.peer import Peer
from benchmarks.peers.turns import Job, in_turns

TASKS, EXCHANGES_PER_TASK = 64, 5
WORK = "64 tasks"
Stored = tuple[int, BaseException | None]
"""How many exchanges a task has stored, and what stopped it."""


async def measure_together(entries: list[Entry], effort: Effort, tell: Tell) -> None:
    """Exchanges in a second, of those that were stored. A task whose append fails stops there, and is counted."""
    sessions = [f"task-{number}" for number in range(TASKS)]
    threads = ThreadPoolExecutor(TASKS)
    rates: dict[str, list[float]] = defaultdict(list)
    failures: dict[str, list[BaseException]] = defaultdict(list)

    async def together(entry: Entry, turn: int) -> float:
        tell(f"{TASKS} tasks, round {turn}: {entry.figures.name}")
        loop = asyncio.get_running_loop()
        start = time.perf_counter()
        if entry.is_async:
            stored = await asyncio.gather(*(_append_several(entry.peer, name) for name in sessions))
        else:
            jobs = [loop.run_in_executor(threads, _append_several_plainly, entry.peer, name) for name in sessions]
            stored = await asyncio.gather(*jobs)
        seconds = time.perf_counter() - start
        failed = failures[entry.figures.name]
        failed += [error for _, error in stored if error is not None]
        if not failed:
            expected = 2 * EXCHANGES_PER_TASK * (turn + 1)
            loaded = await replied(entry.peer.load(sessions[-1]))
            assert loaded == expected, f"loaded {loaded} messages after appends side by side, not {expected}"
        if turn:
            rates[entry.figures.name].append(sum(count for count, _ in stored) / seconds)
        return seconds

    await in_turns([Job(entry, WORK, together) for entry in entries], effort.rounds, warm=1)
    threads.shutdown()
    for entry in entries:
        if rates[entry.figures.name] and WORK not in entry.figures.errors:
            entry.figures.exchanges_per_second = statistics.median(rates[entry.figures.name])
        if failed := failures[entry.figures.name]:
            entry.figures.failed_tasks = len(failed)
            entry.figures.failed_because = reason(failed[0])


async def _append_several(peer: Peer, session: str) -> Stored:
    for count in range(EXCHANGES_PER_TASK):
        try:
            await cast(Awaitable[None], peer.append(session, *TEXTS))
        except Exception as error:  # noqa: BLE001 - a store that refuses under load is a result
            return count, error
    return EXCHANGES_PER_TASK, None


def _append_several_plainly(peer: Peer, session: str) -> Stored:
    for count in range(EXCHANGES_PER_TASK):
        try:
            peer.append(session, *TEXTS)
        except Exception as error:  # noqa: BLE001 - a store that refuses under load is a result
            return count, error
    return EXCHANGES_PER_TASK, None
