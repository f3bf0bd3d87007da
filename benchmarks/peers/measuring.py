"""The run: in each contest, every store does the same work in one process, turn by turn in a shuffled order."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import os
import platform
import random
import re
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from benchmarks.peers.contests import LENGTHS, Contest
from benchmarks.peers.peer import FillingPeer, Peer, Reply, T

APPENDS, LOADS, LISTINGS = 58, 10, 15
WARM_TURNS = 2
TASKS, EXCHANGES_PER_TASK, ROUNDS = 64, 5, 3
SESSIONS, NEWEST = 1000, 50
USER_TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
AGENT_TEXT = ("Sphinx of black quartz, judge my vow. " * 6)[:200]
TEXTS = USER_TEXT, AGENT_TEXT


class Figures(msgspec.Struct):
    """What one store needed, in seconds; what it could not do has a reason in ``errors`` or is not there."""

    name: str
    version: str = ""
    durability: str = ""
    used: str = ""
    face: str = ""
    append: dict[int, float] = {}
    load: float | None = None
    exchanges_per_second: float | None = None
    failed_tasks: int = 0
    failed_because: str = ""
    list_newest: float | None = None
    errors: dict[str, str] = {}


class Result(msgspec.Struct):
    """All figures of one contest."""

    engine: str
    about: str
    stores: list[Figures]


class Run(msgspec.Struct):
    """All figures of one run, and where they come from."""

    date: str
    machine: str
    contests: list[Result]

    @property
    def stores(self) -> Iterator[Figures]:
        return (store for contest in self.contests for store in contest.stores)


class _Entry:
    """A store in the contest."""

    def __init__(self, peer: Peer, figures: Figures) -> None:
        self.peer = peer
        self.figures = figures

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.peer.append)

    def failed(self, work: str, error: BaseException) -> None:
        self.figures.errors[work] = _reason(error)


def _reason(error: BaseException) -> str:
    message = re.sub(r"/\S*/", "", str(error).partition("[SQL")[0])  # without this machine's directories
    return f"{type(error).__name__}: {' '.join(message.split())}"[:120]


Tell = Callable[[str], None]
"""Is told what is being done now."""


async def run(contests: Sequence[Contest], tell: Tell) -> Run:
    """Measure everything. All stores are imported first: what is measured is what was there when the run began."""
    tell("importing")
    made = [[entry for module in contest.modules.items() for entry in _made(*module)] for contest in contests]
    results = [
        await _held(contest, entries, lambda words, engine=contest.engine: tell(f"{engine}: {words}"))
        for contest, entries in zip(contests, made, strict=True)
    ]
    return Run(datetime.now(UTC).strftime("%Y-%m-%d"), _machine(), results)


async def _held(contest: Contest, made: list[_Entry], tell: Tell) -> Result:
    """One contest. If its server does not start, every row tells why."""
    tell("opening")
    result = Result(contest.engine, "", [entry.figures for entry in made])
    with ExitStack() as stack:
        try:
            ground = stack.enter_context(contest.ground())
        except Exception as error:  # noqa: BLE001 - the table shows it
            for entry in made:
                entry.failed("open", error)
            return result
        result.engine, result.about = ground.engine, ground.about
        entries = [entry for entry in made if await _opened(entry, ground.fresh)]
        await _measure_append(entries, contest.lengths, tell)
        await _measure_load(entries, tell)
        await _measure_together(entries, tell)
        for entry in entries:
            await _attempt(entry, "close", entry.peer.close)
        await _measure_listing(entries, ground.fresh, tell)
    return result


def _made(module: str, names: tuple[str, ...]) -> Iterator[_Entry]:
    try:
        loaded = importlib.import_module(f"benchmarks.peers.{module}")
    except Exception as error:  # noqa: BLE001 - whatever keeps a peer from being imported is its row's reason
        for name in names:
            absent = _Entry(cast(Peer, None), Figures(name))
            absent.failed("import", error)
            yield absent
        return
    for name in names:
        peer: Peer = getattr(loaded, name)()
        entry = _Entry(peer, Figures(peer.name, _version(peer.package), used=peer.used))
        entry.figures.face = "async" if entry.is_async else "plain"
        yield entry


def _version(package: str) -> str:
    try:
        return version(package) if package else sqlite3.sqlite_version
    except PackageNotFoundError:
        return "?"


async def _opened(entry: _Entry, fresh: Callable[[], Any]) -> bool:
    if entry.figures.errors:
        return False

    async def open_and_use() -> str:
        await _reply(entry.peer.open(fresh()))
        await _reply(entry.peer.append("first", *TEXTS))
        return await _reply(entry.peer.durability())

    entry.figures.durability = await _attempt(entry, "open", open_and_use) or ""
    return not entry.figures.errors


async def _reply(reply: Reply[T]) -> T:
    """What a store returned, awaited if it is asynchronous."""
    return await reply if inspect.isawaitable(reply) else cast(T, reply)


async def _attempt(entry: _Entry, work: str, action: Callable[[], Reply[T]]) -> T | None:
    """What the action gives, or None with the reason noted."""
    try:
        return await _reply(action())
    except Exception as error:  # noqa: BLE001 - the table shows it
        entry.failed(work, error)
        return None


class _Job(NamedTuple):
    """What one store does once in each turn, and tells the seconds of."""

    entry: _Entry
    work: str
    action: Callable[[_Entry, int], Awaitable[float]]


async def _in_turns(jobs: list[_Job], turns: int, *, warm: int) -> dict[tuple[str, str], float]:
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
            seconds = await _attempt(job.entry, job.work, lambda job=job, turn=turn: job.action(job.entry, turn))
            if seconds is not None and turn >= warm:
                times[figures.name, job.work].append(seconds)
    gc.unfreeze()
    able = [(job.entry.figures.name, job.work) for job in jobs if job.work not in job.entry.figures.errors]
    return {key: statistics.median(times[key]) for key in able}


async def _fill(entry: _Entry, sessions: list[str], exchanges: int) -> None:
    for session in sessions:
        if hasattr(entry.peer, "fill"):
            await _reply(cast(FillingPeer, entry.peer).fill(session, exchanges, *TEXTS))
            continue
        for _ in range(exchanges):
            await _reply(entry.peer.append(session, *TEXTS))


async def _measure_append(entries: list[_Entry], lengths: Sequence[int], tell: Tell) -> None:
    jobs: list[_Job] = []
    for entry in entries:
        for length in lengths:
            work = f"append {length}"
            tell(f"{work}: filling {entry.figures.name}")
            count = -(-(APPENDS + WARM_TURNS) // _appends_to_each(length))
            await _attempt(entry, work, partial(_fill, entry, [f"{length}-{n}" for n in range(count)], length))
            jobs.append(_Job(entry, work, partial(_append_once, length)))
    tell("append")
    medians = await _in_turns(jobs, APPENDS, warm=WARM_TURNS)
    for entry in entries:
        costs = {length: medians.get((entry.figures.name, f"append {length}")) for length in lengths}
        entry.figures.append = {length: cost for length, cost in costs.items() if cost is not None}


def _appends_to_each(length: int) -> int:
    """How many appends one session takes before the next is used, so that it stays about that long."""
    return max(5, length // 5)


async def _append_once(length: int, entry: _Entry, turn: int) -> float:
    session = f"{length}-{turn // _appends_to_each(length)}"
    start = time.perf_counter()
    reply = entry.peer.append(session, *TEXTS)
    if reply is not None:
        await reply
    return time.perf_counter() - start


async def _measure_load(entries: list[_Entry], tell: Tell) -> None:
    length = LENGTHS[-1]
    expected = 2 * (length + min(APPENDS + WARM_TURNS, _appends_to_each(length)))

    async def load(entry: _Entry, _: int) -> float:
        start = time.perf_counter()
        count = await _reply(entry.peer.load(f"{length}-0"))
        seconds = time.perf_counter() - start
        assert count == expected, f"loaded {count} messages, not {expected}"
        return seconds

    tell("load")
    medians = await _in_turns([_Job(entry, "load", load) for entry in entries], LOADS, warm=WARM_TURNS)
    for entry in entries:
        entry.figures.load = medians.get((entry.figures.name, "load"))


async def _measure_together(entries: list[_Entry], tell: Tell) -> None:
    """Exchanges in a second, of those that were stored. A task whose append fails stops there, and is counted."""
    sessions = [f"task-{number}" for number in range(TASKS)]
    threads = ThreadPoolExecutor(TASKS)
    rates: dict[str, list[float]] = defaultdict(list)
    failures: dict[str, list[BaseException]] = defaultdict(list)

    async def together(entry: _Entry, turn: int) -> float:
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
            loaded = await _reply(entry.peer.load(sessions[-1]))
            assert loaded == expected, f"loaded {loaded} messages after appends side by side, not {expected}"
        if turn:
            rates[entry.figures.name].append(sum(count for count, _ in stored) / seconds)
        return seconds

    await _in_turns([_Job(entry, "64 tasks", together) for entry in entries], ROUNDS, warm=1)
    threads.shutdown()
    for entry in entries:
        if rates[entry.figures.name] and "64 tasks" not in entry.figures.errors:
            entry.figures.exchanges_per_second = statistics.median(rates[entry.figures.name])
        if failed := failures[entry.figures.name]:
            entry.figures.failed_tasks = len(failed)
            entry.figures.failed_because = _reason(failed[0])


Stored = tuple[int, BaseException | None]
"""How many exchanges a task has stored, and what stopped it."""


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


async def _measure_listing(entries: list[_Entry], fresh: Callable[[], Any], tell: Tell) -> None:
    """In stores of their own, that hold so many sessions and no other."""
    listing: list[_Entry] = []
    for entry in entries:
        tell(f"list: filling {entry.figures.name}")
        if await _attempt(entry, "list", lambda entry=entry: _filled_for_listing(entry, fresh())):
            listing.append(entry)

    async def list_newest(entry: _Entry, _: int) -> float:
        start = time.perf_counter()
        count = await _reply(cast(Reply[int], entry.peer.list_newest(NEWEST)))
        seconds = time.perf_counter() - start
        assert count == NEWEST, f"listed {count}, not {NEWEST}"
        return seconds

    tell("list")
    medians = await _in_turns([_Job(entry, "list", list_newest) for entry in listing], LISTINGS, warm=WARM_TURNS)
    for entry in listing:
        entry.figures.list_newest = medians.get((entry.figures.name, "list"))
        await _attempt(entry, "close", entry.peer.close)


async def _filled_for_listing(entry: _Entry, place: Any) -> bool:
    """A fresh store with all its sessions; False: it has no listing."""
    await _reply(entry.peer.open(place))
    await _reply(entry.peer.append("session-0", *TEXTS))
    if await _reply(cast(Reply[int | None], entry.peer.list_newest(NEWEST))) is None:
        await _reply(entry.peer.close())
        return False
    for number in range(1, SESSIONS):
        await _reply(entry.peer.append(f"session-{number}", *TEXTS))
    return True


def _machine() -> str:
    """General words: what a figure depends on."""
    return ", ".join(
        (
            f"{os.cpu_count()} cores",
            f"{platform.system()} on {_file_system(Path(tempfile.gettempdir()))}",
            f"Python {platform.python_version()}",
            f"SQLite {sqlite3.sqlite_version}",
        )
    )


def _file_system(place: Path) -> str:
    """The kind of file system this directory is on."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "an unknown file system"
    rows = (line.split()[1:3] for line in mounts.read_text().splitlines())
    holding = [(target, kind) for target, kind in rows if place.resolve().is_relative_to(target)]
    return max(holding, key=lambda row: len(row[0]))[1] if holding else "an unknown file system"
