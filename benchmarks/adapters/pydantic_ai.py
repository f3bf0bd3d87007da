"""A turn, a load and a listing of Pydantic AI's conversations, at several lengths.

    python -m benchmarks.adapters.pydantic_ai [--quick]

Pydantic AI ships a store in memory, and none that lasts. Beside ours stand that one, and what its documentation shows
for a database of one's own: the whole conversation as JSON in one row, here of SQLite with the same durability. A turn
is a load of the last ten messages (of all, where there is no such load), two messages more, and a save. Turns
alternate, so that a busy machine is busy for all; medians are shown, in milliseconds.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from statestore.adapters.pydantic_ai import StateStoreConversations

LENGTHS = (10, 1000, 4000)
CONVERSATIONS = 1000


class OneRow:
    """A conversation is a row, written whole."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("CREATE TABLE conversations (id TEXT PRIMARY KEY, updated REAL, body BLOB)")

    async def load(self, conversation_id: str, limit: int | None = None) -> Conversation | None:
        return await asyncio.to_thread(self._load, conversation_id)

    def _load(self, conversation_id: str) -> Conversation | None:
        row = self._connection.execute("SELECT body FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        return None if row is None else ConversationTypeAdapter.validate_json(row[0])

    async def save(self, conversation: Conversation) -> None:
        await asyncio.to_thread(self._save, conversation)

    def _save(self, conversation: Conversation) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)",
            (conversation.conversation_id, time.time(), ConversationTypeAdapter.dump_json(conversation)),
        )

    async def close(self) -> None:
        self._connection.close()


def exchange() -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart("u" * 200)]), ModelResponse(parts=[TextPart("a" * 200)])]


async def turn(store: Any) -> None:
    conversation = await store.load("c", limit=10)
    conversation.messages += exchange()
    await store.save(conversation)


async def by_turns(works: dict[str, Callable[[], Awaitable[object]]], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            gc.collect()  # what one leaves behind is not cleared away on another's time
            start = time.perf_counter()
            await work()
            times[name].append((time.perf_counter() - start) * 1000)
    return {name: median(spent) for name, spent in times.items()}


async def at_length(exchanges: int, repeats: int) -> None:
    with TemporaryDirectory() as directory:
        stores: dict[str, Any] = {
            "in memory": InMemoryConversationStore(),
            "one row": OneRow(Path(directory) / "rows.db"),
            "ours": StateStoreConversations(Path(directory) / "ours.db"),
        }
        for name, store in stores.items():
            conversation = Conversation(conversation_id="c")
            for number in range(exchanges):
                conversation.messages += exchange()
                if (
                    name == "ours" or number == exchanges - 1
                ):  # as it would come about, where that does not take all day
                    await store.save(conversation)
        turns = await by_turns({name: lambda store=store: turn(store) for name, store in stores.items()}, repeats * 3)
        loads = await by_turns({name: lambda store=store: store.load("c") for name, store in stores.items()}, repeats)
        for what, found in (("turn", turns), ("load", loads)):
            print(f"| {exchanges} | {what} | " + " | ".join(f"{found[name]:.2f}" for name in stores) + " |", flush=True)
        await stores["one row"].close()
        await stores["ours"].close()


async def listing(repeats: int) -> None:
    with TemporaryDirectory() as directory:
        async with StateStoreConversations(Path(directory) / "ours.db") as ours:
            theirs = InMemoryConversationStore()
            stores: dict[str, Any] = {"in memory": theirs, "ours": ours}
            for store in stores.values():
                for number in range(CONVERSATIONS):
                    await store.save(Conversation(conversation_id=f"c{number}", messages=exchange()), scope="alice")
            for limit in (None, 50):
                found = await by_turns(
                    {
                        name: lambda store=store, limit=limit: store.list_conversations(scope="alice", limit=limit)
                        for name, store in stores.items()
                    },
                    repeats,
                )
                what = "list all" if limit is None else f"list {limit}"
                print(f"| {CONVERSATIONS} | {what} | {found['in memory']:.2f} | | {found['ours']:.2f} |")


async def main() -> None:
    repeats = 5 if "--quick" in sys.argv else 15
    print("| exchanges | ms | theirs, in memory | one row | ours |\n|---|---|---|---|---|")
    for exchanges in LENGTHS:
        await at_length(exchanges, repeats)
    await listing(repeats)


if __name__ == "__main__":
    asyncio.run(main())
