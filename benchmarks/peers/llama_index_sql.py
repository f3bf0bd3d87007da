"""llama-index-core: ``SQLAlchemyChatStore`` on SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy import text

from benchmarks.peers.peer import described

C = TypeVar("C", bound=AsyncDBChatStore)


class ChatStore(Generic[C]):
    """All sessions in one store, each under its key."""

    _store: C

    @property
    def _filling(self) -> C:
        """The store that sessions are filled with."""
        return self._store

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self._store.add_messages(session, _said(user_text, agent_text))

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        await self._filling.add_messages(session, _said(user_text, agent_text) * exchanges)

    async def load(self, session: str) -> int:
        return len(await self._store.get_messages(session))


def _said(user_text: str, agent_text: str) -> list[ChatMessage]:
    return [ChatMessage(role="user", content=user_text), ChatMessage(role="assistant", content=agent_text)]


class LlamaIndex(ChatStore[SQLAlchemyChatStore]):
    """A row for each message, under the session's key."""

    name = "llama-index-core"
    package = "llama-index-core"
    used = (
        "SQLAlchemyChatStore('messages', 'sqlite+aiosqlite:///…'), which is to replace its other chat stores;"
        " add_messages with both; get_messages. get_keys lists sessions in no order, so it has no newest."
    )

    async def open(self, directory: Path) -> None:
        self._store = SQLAlchemyChatStore("messages", f"sqlite+aiosqlite:///{directory / 'chat.db'}")

    async def list_newest(self, count: int) -> int | None:
        return None

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))

    async def _ask(self, statement: str) -> object:
        sessions, _ = await self._store._initialize()
        async with sessions() as session:
            return (await session.execute(text(statement))).scalar()

    async def close(self) -> None:
        if self._store._async_engine is not None:
            await self._store._async_engine.dispose()
