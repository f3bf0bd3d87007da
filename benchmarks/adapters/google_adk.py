"""google-adk: ``SqliteSessionService`` beside ``StateStoreSessionService``."""

from __future__ import annotations

from pathlib import Path

from benchmarks.adapters.opened import OnSqlite
from benchmarks.peers.google_adk import AdkSqlite, Service
from statestore.adapters.google_adk import StateStoreSessionService

__all__ = ["AdkSqlite", "Ours"]


class Ours(OnSqlite, Service[Path, StateStoreSessionService]):
    """One service."""

    used = "StateStoreSessionService(store); the same calls."

    async def _made(self, place: Path) -> StateStoreSessionService:
        service = StateStoreSessionService(await self._store_in(place))
        self._unflushed = StateStoreSessionService(await self._unflushed_in(place))
        return service

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        for _ in range(exchanges):
            await self._say(self._unflushed, session, user_text, agent_text)
