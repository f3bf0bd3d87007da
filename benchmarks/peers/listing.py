"""The listing of sessions, in stores of their own that hold so many sessions and no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, cast

from benchmarks.peers.entries import TEXTS, Entry, Tell, replied
from benchmarks.peers.figures import Effort
from benchmarks.peers.peer import Reply
from benchmarks.peers.turns import Job, in_turns, of_store


async def measure_listing(entries: list[Entry], effort: Effort, fresh: Callable[[], Any], tell: Tell) -> None:
    """At each number of sessions. The stores grow from one to the next."""
    listing = [
        entry for entry in entries if await entry.attempt("list", lambda entry=entry: _opened_anew(entry, fresh()))
    ]
    works = {number: f"list {number}" for number in effort.listed}
    medians: dict[tuple[str, str], float] = {}
    there = 1
    for number, work in works.items():
        names = [f"session-{count}" for count in range(there, number)]
        for entry in listing:
            tell(f"{work}: filling {entry.figures.name}")
            await entry.attempt(work, lambda entry=entry, names=names: entry.fill(names, 1))
        there = number
        tell(work)
        asked = min(effort.newest or number, number)

        async def list_newest(entry: Entry, _: int, asked: int = asked) -> float:
            start = time.perf_counter()
            count = await replied(cast(Reply[int], entry.peer.list_newest(asked)))
            seconds = time.perf_counter() - start
            assert count == asked, f"listed {count}, not {asked}"
            return seconds

        jobs = [Job(entry, work, list_newest) for entry in listing]
        medians |= await in_turns(jobs, effort.listings, warm=effort.warm)
    for entry in listing:
        entry.figures.listing = of_store(medians, entry, works)
        await entry.attempt("close", entry.peer.close)


async def _opened_anew(entry: Entry, place: Any) -> bool:
    """A fresh store with its first session; False: it has no listing."""
    await replied(entry.peer.open(place))
    await replied(entry.peer.append("session-0", *TEXTS))
    if await replied(cast(Reply[int | None], entry.peer.list_newest(1))) is not None:
        return True
    await replied(entry.peer.close())
    return False
