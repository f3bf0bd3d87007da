"""openai-agents: ``SQLiteSession`` beside ``StateStoreSession``."""

from __future__ import annotations

from pathlib import Path

from benchmarks.adapters.opened import OnSqlite
from benchmarks.peers.openai_agents import OpenAIAgents, Sessions
from statestore.adapters.openai_agents import StateStoreSession

__all__ = ["OpenAIAgents", "Ours"]


class Ours(OnSqlite, Sessions[StateStoreSession]):
    """All sessions on one store."""

    used = "StateStoreSession(session_id, store), an object for a session; the same calls."

    async def open(self, directory: Path) -> None:
        self._store = await self._store_in(directory)
        self._sessions = {}

    async def _made(self, session: str) -> StateStoreSession:
        return StateStoreSession(session, self._store)
