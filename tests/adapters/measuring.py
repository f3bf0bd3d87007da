"""What an adapter costs beside the framework's own SQLite store: appending, loading, listing.

    PYTHONPATH=src:tests python -m adapters.measuring

Both do the same work in one process, turn by turn. Figures are lower quartiles, so that what else the machine does
counts for little; the ratio is ours to theirs. All commits are flushed, as both ship.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from statestore import AsyncStateStore, StateStore

LENGTHS = (10, 1000, 4000)
APPENDS, LOADS = 60, 9
USER_TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
AGENT_TEXT = ("Sphinx of black quartz, judge my vow. " * 6)[:200]
Work = Callable[[], Awaitable[Any]]


async def compare(what: str, theirs: Work, ours: Work, turns: int) -> None:
    """Print what both need for the same work."""
    times: dict[Work, list[float]] = {theirs: [], ours: []}
    for turn in range(turns + 2):
        for work in random.sample([theirs, ours], 2):
            start = time.perf_counter()
            await work()
            if turn >= 2:
                times[work].append(time.perf_counter() - start)
    low, high = (sorted(times[work])[turns // 4] * 1e6 for work in (ours, theirs))
    print(f"{what:44} theirs {high:10,.0f} us   ours {low:10,.0f} us   ratio {low / high:.2f}", flush=True)


async def openai_agents(directory: Path) -> None:
    from agents import SQLiteSession

    from statestore.adapters.openai_agents import StateStoreSession

    answer = {"type": "output_text", "text": AGENT_TEXT, "annotations": [], "logprobs": []}
    exchange: list[Any] = [
        {"role": "user", "content": USER_TEXT},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [answer]},
    ]
    async with AsyncStateStore.open(directory / "openai.db") as store:
        for length in LENGTHS:
            theirs = SQLiteSession(f"s{length}", directory / "theirs.db")
            ours = StateStoreSession(f"s{length}", store)
            for session in (theirs, ours):
                await session.add_items(exchange * length)
            name = f"openai-agents, {length} exchanges:"
            await compare(f"{name} append", *_calls(theirs, ours, "add_items", exchange), APPENDS)
            await compare(f"{name} load", *_calls(theirs, ours, "get_items"), LOADS)
            await compare(f"{name} latest 20", *_calls(theirs, ours, "get_items", 20), APPENDS)
            theirs.close()


async def langchain(directory: Path) -> None:
    from langchain_community.chat_message_histories import SQLChatMessageHistory
    from langchain_core.messages import AIMessage, HumanMessage

    from statestore.adapters.langchain import StateStoreChatMessageHistory

    exchange = [HumanMessage(USER_TEXT), AIMessage(AGENT_TEXT)]
    with StateStore.open(directory / "langchain.db") as store:
        for length in LENGTHS:
            theirs = SQLChatMessageHistory(f"s{length}", connection=f"sqlite:///{directory}/theirs-langchain.db")
            ours = StateStoreChatMessageHistory(f"s{length}", store)
            for history in (theirs, ours):
                history.add_messages(exchange * length)
            name = f"langchain, {length} exchanges:"
            await compare(f"{name} append", *_calls(theirs, ours, "add_messages", exchange), APPENDS)
            await compare(f"{name} load", *_calls(theirs, ours, "messages"), LOADS)


async def llama_index(directory: Path) -> None:
    from llama_index.core.llms import ChatMessage
    from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

    from statestore.adapters.llama_index import StateStoreDBChatStore

    exchange = [ChatMessage(role="user", content=USER_TEXT), ChatMessage(role="assistant", content=AGENT_TEXT)]
    theirs = SQLAlchemyChatStore("messages", async_database_uri=f"sqlite+aiosqlite:///{directory}/theirs-llama.db")
    async with AsyncStateStore.open(directory / "llama.db") as store:
        ours = StateStoreDBChatStore(store)
        for length in LENGTHS:
            key = f"s{length}"
            for chats in (theirs, ours):
                for _ in range(length // 10):
                    await chats.add_messages(key, exchange * 10)
            name = f"llama-index, {length} exchanges:"
            await compare(f"{name} append", *_calls(theirs, ours, "add_messages", key, exchange), APPENDS)
            await compare(f"{name} load", *_calls(theirs, ours, "get_messages", key), LOADS)
        for number in range(1000):
            for chats in (theirs, ours):
                await chats.add_message(f"k{number}", exchange[0])
        await compare("llama-index, 1,003 keys: list", *_calls(theirs, ours, "get_keys"), LOADS)
    if theirs._async_engine is not None:
        await theirs._async_engine.dispose()


def _calls(theirs: Any, ours: Any, name: str, *arguments: Any) -> tuple[Work, Work]:
    """The same call on both, whether it is plain or asynchronous."""

    def call_on(target: Any) -> Work:
        async def call() -> None:
            given = getattr(target, name)
            given = given(*arguments) if callable(given) else given
            if isinstance(given, Awaitable):
                await given

        return call

    return call_on(theirs), call_on(ours)


def main() -> None:
    warnings.simplefilter("ignore")
    for measure in (openai_agents, langchain, llama_index):
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(measure(Path(directory)))


if __name__ == "__main__":
    main()
