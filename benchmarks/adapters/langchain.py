"""langchain: ``SQLChatMessageHistory`` of langchain-community beside ``StateStoreChatMessageHistory``."""

from __future__ import annotations

from pathlib import Path

from benchmarks.adapters.opened import PlainlyOnSqlite
from benchmarks.peers.langchain_sql import Histories, LangChain
from statestore.adapters.langchain import StateStoreChatMessageHistory

__all__ = ["LangChain", "Ours"]


class Ours(PlainlyOnSqlite, Histories[StateStoreChatMessageHistory]):
    """All histories on one store."""

    used = "StateStoreChatMessageHistory(session_id, store), a history for a session, kept; the same calls."

    def open(self, directory: Path) -> None:
        self._store = self._store_in(directory)
        self._histories = {}

    def _made(self, session: str) -> StateStoreChatMessageHistory:
        return StateStoreChatMessageHistory(session, self._store)
