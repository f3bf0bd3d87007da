"""Transcripts of the Claude Agent SDK: appending, loading and listing here, and through the SDK on the CLI's own files.

    python -m benchmarks.adapters.claude_agent_sdk

The SDK ships no durable store. The nearest thing is what the CLI leaves on the disk, JSONL files, which are appended to
here as the CLI does, and flushed, as we flush; they are read and listed by the SDK's own functions.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from claude_agent_sdk import (
    get_session_messages,
    get_session_messages_from_store,
    list_sessions,
    list_sessions_from_store,
    project_key_for_directory,
)

from statestore import AsyncStateStore
from statestore.adapters.claude_agent_sdk import StateStoreSessions

LENGTHS = (10, 1000, 4000)
LISTED = 1000
PLACE = "/home/alice/island"
TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]


def exchange(session: str, parent: str | None) -> list[Any]:
    """A question and its answer."""
    entries: list[Any] = []
    for role, content in (("user", TEXT), ("assistant", [{"type": "text", "text": TEXT}])):
        entry = {"type": role, "uuid": str(uuid4()), "parentUuid": parent, "sessionId": session, "cwd": PLACE}
        entries.append(entry | {"timestamp": "2026-05-01T09:00:00.000Z", "message": {"role": role, "content": content}})
        parent = entry["uuid"]
    return entries


def append_to(path: Path, entries: list[Any]) -> None:
    """What the CLI does, and a flush."""
    with path.open("a") as file:
        file.writelines(json.dumps(entry) + "\n" for entry in entries)
        file.flush()
        os.fsync(file.fileno())


async def turn_by_turn(what: str, theirs: Callable[[], Any], ours: Callable[[], Any], turns: int) -> None:
    """Print the medians of both."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(turns + 3):
        for work, spent in zip((theirs, ours), times, strict=True):
            start = time.perf_counter()
            answer = work()
            if hasattr(answer, "__await__"):
                await answer
            if turn >= 3:
                spent.append(time.perf_counter() - start)
    high, low = (median(spent) * 1e6 for spent in times)
    print(f"{what:32} theirs {high:10,.0f} us   ours {low:10,.0f} us   ratio {low / high:.2f}", flush=True)


async def main(directory: Path) -> None:
    """Measure all."""
    os.environ["CLAUDE_CONFIG_DIR"] = str(directory / "claude")
    project = project_key_for_directory(PLACE)
    files = directory / "claude" / "projects" / project
    files.mkdir(parents=True)
    async with AsyncStateStore.open(directory / "state.db") as store:
        sessions = StateStoreSessions(store)
        for length in LENGTHS:
            session = str(uuid4())
            key: Any = {"project_key": project, "session_id": session}
            path = files / f"{session}.jsonl"
            parent: str | None = None
            whole: list[Any] = []
            for _ in range(length):
                whole += exchange(session, parent)
                parent = whole[-1]["uuid"]
            append_to(path, whole)
            await sessions.append(key, whole)

            def add_theirs(path: Path = path, session: str = session) -> None:
                append_to(path, exchange(session, None))

            def add_ours(key: Any = key, session: str = session) -> Any:
                return sessions.append(key, exchange(session, None))

            def load_theirs(session: str = session) -> Any:
                return get_session_messages(session, PLACE)

            def load_ours(session: str = session) -> Any:
                return get_session_messages_from_store(sessions, session, PLACE)

            await turn_by_turn(f"{length} exchanges: load", load_theirs, load_ours, 9)
            await turn_by_turn(f"{length} exchanges: append", add_theirs, add_ours, 60)
        for _ in range(LISTED):
            session = str(uuid4())
            entries = exchange(session, None)
            append_to(files / f"{session}.jsonl", entries)
            await sessions.append({"project_key": project, "session_id": session}, entries)
        await turn_by_turn(
            f"{LISTED + len(LENGTHS)} sessions: list",
            lambda: list_sessions(PLACE),
            lambda: list_sessions_from_store(sessions, PLACE),
            9,
        )


if __name__ == "__main__":
    with TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
