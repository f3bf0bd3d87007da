"""ADK's own SQLite services beside ours: one more exchange, a load and a listing, at several lengths.

    python -m benchmarks.adapters.google_adk [--quick]

An exchange is two events of 200 characters, each appended by itself, as a runner does. Turns alternate between the
services, so that a busy machine is busy for all; medians are shown, in milliseconds. "ours, first" is the first listing
of a service, which reads the state of every session; later ones read what changed.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from google.adk.events.event import Event
from google.adk.sessions import DatabaseSessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part

from statestore.adapters.google_adk import StateStoreSessionService

LENGTHS = (10, 1000, 4000)
SESSIONS = 1000
PLACE = {"app_name": "app", "user_id": "user"}


def services(directory: Path) -> dict[str, Any]:
    return {
        "sqlite": SqliteSessionService(str(directory / "theirs.db")),
        "database": DatabaseSessionService(f"sqlite+aiosqlite:///{directory / 'database.db'}"),
        "ours": StateStoreSessionService(directory / "ours.db"),
    }


async def say(service: Any, session: Any) -> None:
    for author, role in (("user", "user"), ("agent", "model")):
        content = Content(role=role, parts=[Part(text="x" * 200)])
        await service.append_event(session, Event(author=author, invocation_id="run", content=content))


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    gc.collect()  # what one leaves behind is not cleared away on another's time
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1000


async def by_turns(works: dict[str, Callable[[], Awaitable[object]]], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            times[name].append(await timed(work))
    return {name: median(spent) for name, spent in times.items()}


async def at_length(exchanges: int, repeats: int) -> None:
    with TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            made = services(Path(directory))
            sessions: dict[str, Any] = {}
            for name, service in made.items():
                stack.push_async_callback(service.close)
                sessions[name] = await service.create_session(**PLACE, session_id="s")
            filler = [(name, service) for name, service in made.items() if name != "database" or exchanges < 100]
            for name, service in filler:
                for _ in range(exchanges):
                    await say(service, sessions[name])
            kept = dict(filler)
            append = await by_turns(
                {name: lambda name=name: say(kept[name], sessions[name]) for name in kept}, repeats * 5
            )
            load = await by_turns(
                {name: lambda name=name: kept[name].get_session(**PLACE, session_id="s") for name in kept}, repeats
            )
            newest = GetSessionConfig(num_recent_events=10)
            last = await by_turns(
                {
                    name: lambda name=name: kept[name].get_session(**PLACE, session_id="s", config=newest)
                    for name in kept
                },
                repeats,
            )
            for what, found in (("exchange", append), ("load", load), ("newest ten", last)):
                print(
                    f"| {exchanges} | {what} | "
                    + " | ".join(f"{found[n]:.2f}" if n in found else "" for n in made)
                    + " | |"
                )


async def listing(repeats: int) -> None:
    with TemporaryDirectory() as directory:
        async with AsyncExitStack() as stack:
            made = services(Path(directory))
            for service in made.values():
                stack.push_async_callback(service.close)
                for number in range(SESSIONS):
                    await service.create_session(**PLACE, session_id=f"s{number}", state={"topic": f"ferry {number}"})
            first = []
            for _ in range(max(repeats // 3, 2)):
                async with StateStoreSessionService(Path(directory) / "ours.db") as fresh:
                    await fresh.get_session(**PLACE, session_id="none")
                    first.append(await timed(lambda fresh=fresh: fresh.list_sessions(**PLACE)))
            found = await by_turns(
                {name: lambda service=service: service.list_sessions(**PLACE) for name, service in made.items()},
                repeats,
            )
            page = await by_turns({"ours": lambda: made["ours"].list_sessions_page(**PLACE, limit=50)}, repeats)
            cells = " | ".join(f"{found[name]:.2f}" for name in made)
            print(
                f"| {SESSIONS} sessions | list | {cells} | first {median(first):.1f}, a page of 50 {page['ours']:.2f} |"
            )


async def talk(service: Any, session: Any, exchanges: int) -> None:
    for _ in range(exchanges):
        await say(service, session)


async def crowd(tasks: int, exchanges: int) -> None:
    """Many tasks at once, a session each."""
    with TemporaryDirectory() as directory:
        cells: list[str] = []
        for service in services(Path(directory)).values():
            sessions = [await service.create_session(**PLACE) for _ in range(tasks)]
            start = time.perf_counter()
            outcomes = await asyncio.gather(
                *(talk(service, session, exchanges) for session in sessions), return_exceptions=True
            )
            spent = time.perf_counter() - start
            failed = sum(isinstance(outcome, Exception) for outcome in outcomes)
            cells.append(f"{tasks * exchanges / spent:.0f}" if not failed else f"{failed} tasks failed")
            await service.close()
        print(f"| {tasks} tasks | exchanges a second | " + " | ".join(cells) + " | |")


async def main() -> None:
    repeats = 5 if "--quick" in sys.argv else 15
    print("| exchanges | ms | theirs, sqlite | theirs, database | ours | |\n|---|---|---|---|---|---|")
    for exchanges in LENGTHS:
        await at_length(exchanges, repeats)
    await listing(repeats)
    await crowd(64, 5)


if __name__ == "__main__":
    asyncio.run(main())
