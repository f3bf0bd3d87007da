"""Every adapter closes what it opened, in the way of its kind, and never what it was lent."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import pytest

from statestore import AsyncStateStore, NotSupported, StateStore, StoreClosed

Use = Callable[[Any], Awaitable[Any]]


async def _keys_read(storage: Any) -> Any:
    from strands.types.exceptions import StorageError

    try:
        return await storage.list()
    except StorageError as error:  # the framework's own, around ours
        raise (error.__cause__ or error) from None


ASYNCHRONOUS: dict[str, tuple[str, Callable[..., Any], Use]] = {
    "StateStoreSession": ("openai_agents", lambda make, store: make("trip", store), lambda one: one.get_items()),
    "StateStoreSessionService": (
        "google_adk",
        lambda make, store: make(store),
        lambda one: one.list_sessions(app_name="island"),
    ),
    "StateStoreConversations": ("pydantic_ai", lambda make, store: make(store), lambda one: one.read_records()),
    "StateStoreSessions": ("claude_agent_sdk", lambda make, store: make(store), lambda one: one.list_sessions("p")),
    "StateStoreHistoryProvider": (
        "agent_framework",
        lambda make, store: make(store),
        lambda one: one.get_messages("1"),
    ),
    "StateStoreSessionStore": ("agent_framework", lambda make, store: make(store), lambda one: one.get("1")),
    "StateStoreCheckpointStorage": (
        "agent_framework",
        lambda make, store: make(store),
        lambda one: one.get_latest(workflow_name="w"),
    ),
    "StateStoreStorage": ("strands", lambda make, store: make(store), _keys_read),
}
"""Adapters for event loops: ``await close()``, and ``async with``."""


async def _repository_read(repository: Any) -> Any:
    return await asyncio.to_thread(repository.read_session, "trip")


async def _manager_read(manager: Any) -> Any:
    return await _repository_read(manager.repository)


async def _thread_read(saver: Any) -> Any:
    return await saver.aget_tuple({"configurable": {"thread_id": "trip"}})


BOTH: dict[str, tuple[str, Callable[..., Any], Use]] = {
    "StateStoreSaver": ("langgraph", lambda make, store: make(store), _thread_read),
    "StateStoreStore": ("langgraph", lambda make, store: make(store), lambda one: one.aget(("alice",), "name")),
    "StateStoreChatMessageHistory": (
        "langchain",
        lambda make, store: make("trip", store),
        lambda one: one.aget_messages(),
    ),
    "StateStoreChatStore": ("llama_index", lambda make, store: make(store), lambda one: one.aget_keys()),
    "StateStoreDBChatStore": ("llama_index", lambda make, store: make(store), lambda one: one.get_keys()),
    "StateStoreRepository": ("strands", lambda make, store: make(store), _repository_read),
    "StateStoreSessionManager": ("strands", lambda make, store: make("trip", store), _manager_read),
}
"""Adapters for both: ``close()`` and ``await aclose()``, ``with`` and ``async with``."""


def _adapter(name: str) -> tuple[Callable[[Any], Any], Use]:
    module, made, use = {**ASYNCHRONOUS, **BOTH}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some contracts are experimental
        try:
            make = getattr(import_module(f"statestore.adapters.{module}"), name)
        except ImportError as error:
            pytest.skip(str(error))
    return lambda store: made(make, store), use


@pytest.mark.parametrize("name", [*ASYNCHRONOUS, *BOTH])
def test_leaving_an_async_with_closes_what_was_opened(name: str, sqlite_url: str) -> None:
    made, use = _adapter(name)

    async def scene() -> None:
        async with made(sqlite_url) as adapter:
            await use(adapter)
        with pytest.raises(StoreClosed):
            await use(adapter)

    asyncio.run(scene())


@pytest.mark.parametrize("name", [*ASYNCHRONOUS, *BOTH])
def test_what_was_lent_stays_open(name: str) -> None:
    made, use = _adapter(name)

    async def scene(store: StateStore) -> None:
        async with made(store) as adapter:
            await use(adapter)
        await use(adapter)

    with StateStore.open("memory:") as store:
        asyncio.run(scene(store))
        assert store.count_sessions() <= 1


@pytest.mark.parametrize("name", [*ASYNCHRONOUS, *BOTH])
def test_it_is_closed_by_name_any_number_of_times(name: str, sqlite_url: str) -> None:
    made, use = _adapter(name)

    async def scene() -> None:
        adapter = made(sqlite_url)
        await use(adapter)
        for _ in range(2):
            await (adapter.close() if name in ASYNCHRONOUS else adapter.aclose())
        with pytest.raises(StoreClosed):
            await use(adapter)

    asyncio.run(scene())


@pytest.mark.parametrize("name", BOTH)
def test_leaving_a_plain_with_closes_what_was_opened(name: str, sqlite_url: str) -> None:
    made, use = _adapter(name)
    with made(sqlite_url) as adapter:
        asyncio.run(use(adapter))
    with pytest.raises(StoreClosed):
        asyncio.run(use(adapter))
    adapter.close()


def test_a_plain_with_closes_what_was_opened_in_a_loop_that_is_over(store_url: str) -> None:
    made, use = _adapter("StateStoreDBChatStore")
    with made(store_url) as adapter:
        asyncio.run(use(adapter))
    with pytest.raises(StoreClosed):
        asyncio.run(use(adapter))


def test_a_plain_close_does_not_block_the_loop_that_it_waits_for(sqlite_url: str) -> None:
    made, use = _adapter("StateStoreDBChatStore")

    async def scene() -> None:
        adapter = made(sqlite_url)
        await use(adapter)
        with pytest.raises(NotSupported, match="await"):
            adapter.close()
        await use(adapter)
        await asyncio.to_thread(adapter.close)
        with pytest.raises(StoreClosed):
            await use(adapter)

    asyncio.run(scene())


def test_a_plain_close_leaves_a_lent_store_alone_in_its_loop() -> None:
    made, use = _adapter("StateStoreDBChatStore")

    async def scene() -> None:
        async with AsyncStateStore.open("memory:") as store:
            adapter = made(store)
            adapter.close()
            await use(adapter)

    asyncio.run(scene())
