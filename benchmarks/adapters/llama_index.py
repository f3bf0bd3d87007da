"""llama-index: ``SQLAlchemyChatStore`` beside ``StateStoreDBChatStore``. Both list their keys, in no order."""

from __future__ import annotations

from pathlib import Path

from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.adapters.opened import OnSqlite
from benchmarks.peers.llama_index_sql import ChatStore, LlamaIndex
from statestore.adapters.llama_index import StateStoreDBChatStore


class Theirs(LlamaIndex):
    """With the listing that both have."""

    used = "SQLAlchemyChatStore('messages', 'sqlite+aiosqlite:///…'); add_messages with both; get_messages; get_keys."

    async def open(self, directory: Path) -> None:
        await super().open(directory)
        engine = create_async_engine(self._store.async_database_uri or "")
        event.listen(engine.sync_engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous = OFF"))
        self._unflushed = SQLAlchemyChatStore("messages", async_engine=engine)

    @property
    def _filling(self) -> SQLAlchemyChatStore:
        return self._unflushed

    async def list_newest(self, count: int) -> int:
        return len(await self._store.get_keys())

    async def close(self) -> None:
        await super().close()
        if self._unflushed._async_engine is not None:
            await self._unflushed._async_engine.dispose()


class Ours(OnSqlite, ChatStore[StateStoreDBChatStore]):
    """One chat store."""

    used = "StateStoreDBChatStore(store); the same calls."

    async def open(self, directory: Path) -> None:
        self._store = StateStoreDBChatStore(await self._store_in(directory))
        self._unflushed = StateStoreDBChatStore(await self._unflushed_in(directory))

    @property
    def _filling(self) -> StateStoreDBChatStore:
        return self._unflushed

    async def list_newest(self, count: int) -> int:
        return len(await self._store.get_keys())
