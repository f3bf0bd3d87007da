"""pydantic-ai: its store in memory, and a row of SQLite for a conversation, beside ``StateStoreConversations``.

Pydantic AI ships a store in memory, and none that lasts. What its documentation shows for a database of one's own is
the whole conversation as JSON.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

from pydantic_ai.conversation import Conversation, ConversationTypeAdapter
from pydantic_ai.conversation_store import InMemoryConversationStore
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from benchmarks.adapters.opened import OnSqlite
from benchmarks.peers.peer import pragmas
from statestore.adapters.pydantic_ai import StateStoreConversations


class _Conversations:
    """A turn: load the last ten messages (all of them, where there is no such load), say two more, save."""

    _conversations: Any

    @property
    def _filling(self) -> Any:
        """The store that conversations are filled with."""
        return self._conversations

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await _say(self._conversations, session, 1, user_text, agent_text)

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        await _say(self._filling, session, exchanges, user_text, agent_text)

    async def load(self, session: str) -> int:
        return len((await self._conversations.load(session)).messages)

    async def list_newest(self, count: int) -> int | None:
        return len(await self._conversations.list_conversations(limit=count))


async def _say(conversations: Any, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
    conversation = await conversations.load(session, limit=10) or Conversation(conversation_id=session)
    for _ in range(exchanges):
        said: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(user_text)]),
            ModelResponse(parts=[TextPart(agent_text)]),
        ]
        conversation.messages += said
    await conversations.save(conversation)


class InMemory(_Conversations):
    """What it ships."""

    name = "pydantic-ai, in memory"
    package = "pydantic-ai-slim"
    used = (
        "InMemoryConversationStore(), which it ships for tests, and none that lasts. An append is a load(limit=10), two"
        " messages more, and a save; load; list_conversations."
    )

    async def open(self, directory: Path) -> None:
        self._conversations = InMemoryConversationStore()

    def durability(self) -> str:
        return "in memory, gone with the process"

    async def close(self) -> None:
        """It has nothing to let go of."""


class _Rows:
    """A conversation is a row, written whole."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE conversations (id TEXT PRIMARY KEY, updated REAL, body BLOB)")

    async def load(self, conversation_id: str, limit: int | None = None) -> Conversation | None:
        return await asyncio.to_thread(self._load, conversation_id)

    def _load(self, conversation_id: str) -> Conversation | None:
        row = self.connection.execute("SELECT body FROM conversations WHERE id = ?", (conversation_id,)).fetchone()
        return None if row is None else ConversationTypeAdapter.validate_json(row[0])

    async def save(self, conversation: Conversation) -> None:
        await asyncio.to_thread(self._save, conversation)

    def _save(self, conversation: Conversation) -> None:
        self.connection.execute(
            "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)",
            (conversation.conversation_id, time.time(), ConversationTypeAdapter.dump_json(conversation)),
        )


class OneRow(_Conversations):
    """What its documentation shows for a database of one's own."""

    name = "pydantic-ai, one row"
    package = "pydantic-ai-slim"
    used = (
        "What its documentation shows for a database of one's own: the whole conversation as JSON, in a row of SQLite."
        " An append loads it, adds two messages, and writes it. It does not list."
    )

    async def open(self, directory: Path) -> None:
        self._conversations = _Rows(directory / "rows.db")

    async def list_newest(self, count: int) -> None:
        return None

    def durability(self) -> str:
        return pragmas(lambda statement: self._conversations.connection.execute(statement).fetchone())

    async def close(self) -> None:
        self._conversations.connection.close()


class Ours(OnSqlite, _Conversations):
    """One store of conversations."""

    used = "StateStoreConversations(store); an append is a load(limit=10), two messages more, and a save."

    async def open(self, directory: Path) -> None:
        self._conversations = StateStoreConversations(await self._store_in(directory))
        self._unflushed = StateStoreConversations(await self._unflushed_in(directory))

    @property
    def _filling(self) -> StateStoreConversations:
        return self._unflushed
