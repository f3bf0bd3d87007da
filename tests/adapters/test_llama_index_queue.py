"""LlamaIndex's queue of messages with an archive: first on its own SQLAlchemyChatStore, then on ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")
pytest.importorskip("sqlalchemy")
pytest.importorskip("aiosqlite")

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore

from adapters.conftest import ENGINES, new_url
from adapters.contests import WRITES, two_processes
from adapters.writers import write_llama_queue
from statestore import AsyncStateStore, UserMessage
from statestore.adapters.llama_index import StateStoreDBChatStore

MESSAGES = [ChatMessage(role="user" if n % 2 == 0 else "assistant", content=f"message {n}") for n in range(8)]
ARCHIVED, ACTIVE = MessageStatus.ARCHIVED, MessageStatus.ACTIVE
Opened = Callable[[], Any]


@asynccontextmanager
async def _theirs(path: Path) -> AsyncIterator[AsyncDBChatStore]:
    chats = SQLAlchemyChatStore("messages", async_database_uri=f"sqlite+aiosqlite:///{path}")
    yield chats
    if chats._async_engine is not None:
        await chats._async_engine.dispose()


@asynccontextmanager
async def _ours(url: str) -> AsyncIterator[AsyncDBChatStore]:
    chats = StateStoreDBChatStore(url)
    yield chats
    await chats.aclose()


@pytest.fixture(params=["theirs", *ENGINES])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens a chat store; inside one test, always the same."""
    if request.param == "theirs":
        yield partial(_theirs, tmp_path / "theirs.db")
        return
    for url in new_url(request.param, tmp_path):
        yield partial(_ours, url)


def test_messages_are_added_read_and_counted_by_status(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            assert await chats.get_messages("k") == []
            assert await chats.count_messages("k") == 0
            await chats.add_message("k", MESSAGES[0])
            await chats.add_messages("k", MESSAGES[1:4])
            await chats.add_message("k", MESSAGES[4], status=ARCHIVED)
            assert await chats.get_messages("k") == MESSAGES[:4]
            assert await chats.get_messages("k", status=ARCHIVED) == MESSAGES[4:5]
            assert await chats.get_messages("k", status=None) == MESSAGES[:5]
            assert await chats.count_messages("k") == 4
            assert await chats.count_messages("k", status=ARCHIVED) == 1
            assert await chats.count_messages("k", status=None) == 5
            assert await chats.get_keys() == ["k"]

    asyncio.run(scene())


def test_a_page_has_a_limit_and_an_offset(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            await chats.add_messages("k", MESSAGES)
            assert await chats.get_messages("k", limit=3) == MESSAGES[:3]
            assert await chats.get_messages("k", limit=3, offset=2) == MESSAGES[2:5]
            assert await chats.get_messages("k", limit=30, offset=6) == MESSAGES[6:]

    asyncio.run(scene())


def test_the_oldest_are_archived(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            assert await chats.archive_oldest_messages("k", 2) == []
            await chats.add_messages("k", MESSAGES)
            assert await chats.archive_oldest_messages("k", 2) == MESSAGES[:2]
            assert await chats.archive_oldest_messages("k", 3) == MESSAGES[2:5]
            assert await chats.get_messages("k") == MESSAGES[5:]
            assert await chats.get_messages("k", status=ARCHIVED) == MESSAGES[:5]
            assert await chats.get_messages("k", status=None) == MESSAGES
            assert await chats.archive_oldest_messages("k", 30) == MESSAGES[5:]
            assert await chats.get_messages("k") == []

    asyncio.run(scene())


def test_the_oldest_active_are_deleted(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            assert await chats.delete_oldest_messages("k", 2) == []
            await chats.add_messages("k", MESSAGES)
            await chats.archive_oldest_messages("k", 2)
            assert await chats.delete_oldest_messages("k", 3) == MESSAGES[2:5]
            assert await chats.get_messages("k") == MESSAGES[5:]
            assert await chats.get_messages("k", status=ARCHIVED) == MESSAGES[:2]
            assert await chats.archive_oldest_messages("k", 1) == MESSAGES[5:6]
            assert await chats.delete_oldest_messages("k", 1) == MESSAGES[6:7]
            assert await chats.get_messages("k") == MESSAGES[7:]
            assert await chats.get_messages("k", status=ARCHIVED) == [*MESSAGES[:2], MESSAGES[5]]

    asyncio.run(scene())


def test_messages_are_deleted_by_status(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            await chats.add_messages("k", MESSAGES)
            await chats.archive_oldest_messages("k", 3)
            await chats.delete_messages("k", status=ARCHIVED)
            assert await chats.get_messages("k", status=None) == MESSAGES[3:]
            await chats.archive_oldest_messages("k", 1)
            await chats.delete_messages("k", status=ACTIVE)
            assert await chats.get_messages("k", status=None) == MESSAGES[3:4]
            await chats.delete_messages("k")
            assert await chats.get_messages("k", status=None) == []
            assert await chats.get_keys() == []

    asyncio.run(scene())


def test_set_replaces_everything(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            await chats.set_messages("k", MESSAGES[:3])
            assert await chats.get_messages("k") == MESSAGES[:3]
            await chats.archive_oldest_messages("k", 2)
            await chats.set_messages("k", MESSAGES[1:4])
            assert await chats.get_messages("k") == MESSAGES[1:4]
            await chats.set_messages("k", MESSAGES[4:], status=ARCHIVED)
            assert await chats.get_messages("k") == []
            assert await chats.get_messages("k", status=None) == MESSAGES[4:]

    asyncio.run(scene())


def test_one_message_is_deleted_by_its_number(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as chats:
            await chats.add_messages("k", MESSAGES)
            assert await chats.delete_message("k", 2) == MESSAGES[1]
            assert await chats.delete_message("k", 99) is None
            assert await chats.delete_message("other", 1) is None
            assert await chats.get_messages("k") == [MESSAGES[0], *MESSAGES[2:]]

    asyncio.run(scene())


# -- What ours promises beyond the contract.


def test_a_memory_keeps_its_queue_in_it(store_url: str) -> None:
    async def scene() -> None:
        memory = Memory.from_defaults(session_id="trip", token_limit=60, token_flush_size=10)
        async with _ours(store_url) as chats:
            memory.sql_store = chats
            for message in MESSAGES * 5:
                await memory.aput(message)
            kept = await memory.aget()
            assert kept
            assert kept == (MESSAGES * 5)[-len(kept) :]
            archived = await chats.get_messages("trip", status=ARCHIVED)
            active = await chats.get_messages("trip")
            assert archived
            assert archived + active == MESSAGES * 5

    asyncio.run(scene())


def test_two_processes_lose_nothing_and_archive_nothing_twice(store_url: str) -> None:
    two_processes(write_llama_queue, store_url)

    async def scene() -> None:
        async with _ours(store_url) as chats:
            said = [str(message.content) for message in await chats.get_messages("contest", status=None)]
            assert len(said) == len(set(said)) == 2 * WRITES
            assert await chats.count_messages("contest", status=ARCHIVED) == 2 * WRITES // 10

    asyncio.run(scene())


@pytest.mark.parametrize("is_archived", [True, False])
def test_what_somebody_else_archives_or_deletes_meanwhile_is_not_archived(sqlite_url: str, is_archived: bool) -> None:
    async def scene() -> None:
        async with _ours(sqlite_url) as other, AsyncStateStore.open(sqlite_url) as store:
            take = other.archive_oldest_messages if is_archived else other.delete_oldest_messages
            update, taken = store.update_session_with, []

            async def overtaken(*arguments: Any, **options: Any) -> Any:
                if not taken:
                    taken.extend(await take("k", 2))
                return await update(*arguments, **options)

            await other.add_messages("k", MESSAGES)
            store.update_session_with = overtaken  # pyright: ignore[reportAttributeAccessIssue]
            assert await StateStoreDBChatStore(store).archive_oldest_messages("k", 3) == MESSAGES[2:5]
            assert taken == MESSAGES[:2]
            assert await other.get_messages("k") == MESSAGES[5:]
            assert await other.get_messages("k", status=ARCHIVED) == MESSAGES[0 if is_archived else 2 : 5]

    asyncio.run(scene())


def test_what_others_wrote_is_in_the_queue(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            chats = StateStoreDBChatStore(store)
            await chats.add_messages("k", MESSAGES[:2])
            await store.append("k", UserMessage("From elsewhere."))
            foreign = ChatMessage(role="user", content="From elsewhere.")
            assert await chats.get_messages("k") == [*MESSAGES[:2], foreign]
            assert await chats.archive_oldest_messages("k", 2) == MESSAGES[:2]
            assert await chats.get_messages("k") == [foreign]
            assert await chats.delete_oldest_messages("k", 1) == [foreign]
            assert await chats.get_messages("k", status=None) == MESSAGES[:2]

    asyncio.run(scene())
