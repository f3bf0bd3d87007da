"""strands-agents: ``FileSessionManager``, a file for each message, beside ``StateStoreRepository``."""

from __future__ import annotations

from pathlib import Path

from strands.types.session import Session, SessionType

from benchmarks.adapters.opened import PlainlyOnSqlite
from benchmarks.peers.strands_files import Repositories, Strands
from statestore.adapters.strands import StateStoreRepository

__all__ = ["Ours", "Relaxed", "Strands"]


class Ours(PlainlyOnSqlite, Repositories[StateStoreRepository]):
    """One repository for all sessions."""

    used = "StateStoreRepository(store), which StateStoreSessionManager stands on; the same calls."

    def open(self, directory: Path) -> None:
        self._measured = StateStoreRepository(self._store_in(directory))
        self._unflushed = StateStoreRepository(self._unflushed_in(directory))
        self._lengths, self._sessions = {}, {}

    def _made(self, session: str) -> StateStoreRepository:
        self._measured.create_session(Session(session, SessionType.AGENT))
        return self._measured

    def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        self._repository(session)
        for _ in range(exchanges):
            self._say(self._unflushed, session, user_text, agent_text)


class Relaxed(Ours):
    """What the framework's files promise: to survive a killed process, not a power cut."""

    name = "statestore, relaxed"
    asked = "relaxed"
    used = "The same, on a store that was opened with durability='relaxed', which promises what their files do."
