"""The run: in each contest, every store does the same work in one process, turn by turn in a shuffled order."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.peers.appending import fill, measure_append, measure_load
from benchmarks.peers.contests import Contest
from benchmarks.peers.crowding import measure_together
from benchmarks.peers.entries import Entry, Tell, made
from benchmarks.peers.figures import Result, Run
from benchmarks.peers.keeping import measure_disk
from benchmarks.peers.listing import measure_listing


def begun() -> Run:
    """A run without figures yet: when, and on what."""
    return Run(datetime.now(UTC).strftime("%Y-%m-%d"), _machine())


async def held(contests: Sequence[Contest], tell: Tell) -> list[Result]:
    """Measure everything. All stores are imported first: what is measured is what was there when the run began."""
    tell("importing")
    entries = [[entry for module in contest.modules.items() for entry in made(*module)] for contest in contests]
    return [
        await _held(contest, competing, lambda words, engine=contest.engine: tell(f"{engine}: {words}"))
        for contest, competing in zip(contests, entries, strict=True)
    ]


async def _held(contest: Contest, competing: list[Entry], tell: Tell) -> Result:
    """One contest. If its server does not start, every row tells why."""
    tell("opening")
    effort = contest.effort
    result = Result(contest.engine, "", effort, [entry.figures for entry in competing])
    with ExitStack() as stack:
        try:
            ground = stack.enter_context(contest.ground())
        except Exception as error:  # noqa: BLE001 - the table shows it
            for entry in competing:
                entry.failed("open", error)
            return result
        result.engine, result.about = ground.engine or contest.engine, ground.about
        entries = [entry for entry in competing if await entry.is_open(ground.fresh)]
        await fill(entries, effort, tell)
        await measure_load(entries, effort, tell)
        await measure_append(entries, effort, tell)
        if effort.rounds:
            await measure_together(entries, effort, tell)
        for entry in entries:
            await entry.attempt("close", entry.peer.close)
        if effort.listed:
            await measure_listing(entries, effort, ground.fresh, tell)
        if effort.kept_turns:
            await measure_disk(entries, effort, ground.fresh, tell)
    return result


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
