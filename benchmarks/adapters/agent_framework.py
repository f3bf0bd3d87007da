"""The Agent Framework's own stores on files beside ours on SQLite: history, checkpoints.

    python -m benchmarks.adapters.agent_framework

Turns alternate between them, so that a busy machine is busy for all; medians are shown. The framework's files are not
flushed to the disk, ours are. "ours, relaxed" promises what the files do: to survive a killed process.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from agent_framework import FileCheckpointStorage, FileHistoryProvider, Message, WorkflowCheckpoint

from statestore import AsyncStateStore
from statestore.adapters.agent_framework import StateStoreCheckpointStorage, StateStoreHistoryProvider

LENGTHS = (10, 1000, 4000)
CHECKPOINTS = (10, 1000)
TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
Work = Callable[[Any], Awaitable[Any]]


async def turn_by_turn(what: str, subjects: dict[str, Any], work: Work, turns: int) -> None:
    """Print the medians of all."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(turns + 3):
        for name, subject in subjects.items():
            start = time.perf_counter()
            await work(subject)
            if turn >= 3:
                times[name].append(time.perf_counter() - start)
    told = "   ".join(f"{name} {median(spent) * 1e6:10,.0f} us" for name, spent in times.items())
    print(f"{what:30} {told}", flush=True)


def exchange() -> list[Message]:
    """A question and its answer."""
    return [Message("user", [TEXT]), Message("assistant", [f"{time.perf_counter_ns()} {TEXT}"])]


async def main(directory: Path) -> None:
    """Measure all."""
    async with (
        AsyncStateStore.open(directory / "state.db") as store,
        AsyncStateStore.open(directory / "relaxed.db", durability="relaxed") as relaxed,
    ):
        histories: dict[str, Any] = {
            "theirs": FileHistoryProvider(directory / "history"),
            "ours": StateStoreHistoryProvider(store),
            "ours, relaxed": StateStoreHistoryProvider(relaxed),
        }
        for length in LENGTHS:
            session_id = f"s{length}"
            for history in histories.values():
                await history.save_messages(session_id, [one for _ in range(length) for one in exchange()])

            async def add(history: Any, session_id: str = session_id) -> None:
                await history.save_messages(session_id, exchange())

            async def load(history: Any, session_id: str = session_id) -> None:
                await history.get_messages(session_id)

            await turn_by_turn(f"{length} exchanges: append", histories, add, 15)
            await turn_by_turn(f"{length} exchanges: load", histories, load, 7)

        storages: dict[str, Any] = {
            "theirs": FileCheckpointStorage(directory / "checkpoints"),
            "ours": StateStoreCheckpointStorage(store),
            "ours, relaxed": StateStoreCheckpointStorage(relaxed),
        }

        async def save(storage: Any) -> None:
            await storage.save(WorkflowCheckpoint("flow", "hash", state={"text": TEXT, "pair": (1, 2)}))

        async def latest(storage: Any) -> None:
            await storage.get_latest(workflow_name="flow")

        for number in CHECKPOINTS:
            for storage in storages.values():
                while len(await storage.list_checkpoint_ids(workflow_name="flow")) < number:
                    for _ in range(number // 10):
                        await save(storage)
            await turn_by_turn(f"{number} checkpoints: save", storages, save, 20)
            await turn_by_turn(f"{number} checkpoints: latest", storages, latest, 7)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
