"""The session repository of Strands: its own on files beside ours on SQLite.

    python -m benchmarks.adapters.strands

Turns alternate between the two, so that a busy machine is busy for both; medians are shown. The framework's files are
not flushed to the disk, ours are. "ours, relaxed" promises what the files do: to survive a killed process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from strands.session.file_session_manager import FileSessionManager
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from statestore import StateStore
from statestore.adapters.strands import StateStoreRepository

LENGTHS = (10, 1000, 4000)
TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]


def exchange(number: int) -> list[SessionMessage]:
    """A question and its answer."""
    return [
        SessionMessage.from_message({"role": role, "content": [{"text": TEXT}]}, 2 * number + index)  # type: ignore[typeddict-item]
        for index, role in enumerate(("user", "assistant"))
    ]


def fill(repository: Any, session_id: str, length: int) -> None:
    """A session with so many exchanges."""
    repository.create_session(Session(session_id, SessionType.AGENT))
    repository.create_agent(session_id, SessionAgent("agent", {}, {}))
    for number in range(length):
        for message in exchange(number):
            repository.create_message(session_id, "agent", message)


def turn_by_turn(what: str, works: dict[str, Callable[[], object]], turns: int) -> None:
    """Print the medians of all."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(turns + 3):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn >= 3:
                times[name].append(time.perf_counter() - start)
    told = "   ".join(f"{name} {median(spent) * 1e6:10,.0f} us" for name, spent in times.items())
    print(f"{what:26} {told}", flush=True)


def main(directory: Path) -> None:
    """Measure all."""
    with (
        StateStore.open(directory / "state.db") as store,
        StateStore.open(directory / "relaxed.db", durability="relaxed") as relaxed,
    ):
        repositories: dict[str, Any] = {
            "theirs": FileSessionManager("unused", storage_dir=str(directory / "theirs")),
            "ours": StateStoreRepository(store),
            "ours, relaxed": StateStoreRepository(relaxed),
        }
        for length in LENGTHS:
            session_id = f"s{length}"
            for repository in repositories.values():
                fill(repository, session_id, length)
            counts = dict.fromkeys(repositories, length)

            def add(name: str, session_id: str = session_id, counts: dict[str, int] = counts) -> None:
                for message in exchange(counts[name]):
                    repositories[name].create_message(session_id, "agent", message)
                counts[name] += 1

            def load(name: str, session_id: str = session_id) -> None:
                repositories[name].list_messages(session_id, "agent")

            for what, work, turns in (("append", add, 60), ("load", load, 7)):
                works = {name: lambda name=name, work=work: work(name) for name in repositories}
                turn_by_turn(f"{length} exchanges: {what}", works, turns)


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        main(Path(place))
