"""openai-agents: what its sessions share, and ``SQLiteSession``, an object for each session."""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

from agents import SQLiteSession, TResponseInputItem
from agents.memory import Session

from benchmarks.peers.peer import pragmas

S = TypeVar("S", bound=Session)


class Sessions(Generic[S]):
    """Every session's object is kept."""

    package = "openai-agents"
    _sessions: dict[str, S]

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self.fill(session, 1, user_text, agent_text)

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = await self._made(session)
        said: list[TResponseInputItem] = [
            {"role": "user", "content": user_text},
            {"role": "assistant", "content": agent_text},
        ]
        await self._sessions[session].add_items(said * exchanges)

    async def load(self, session: str) -> int:
        return len(await self._sessions[session].get_items())

    def list_newest(self, count: int) -> None:
        return None

    @abstractmethod
    async def _made(self, session: str) -> S: ...


class OpenAIAgents(Sessions[SQLiteSession]):
    """A session has a connection in each thread that may serve it."""

    name = "openai-agents"
    used = (
        "SQLiteSession(session_id, db_path), all on one file. One object for a session, kept open; it opens a"
        " connection in each thread of the loop's pool, which is done before anything is timed. add_items with both"
        " messages; get_items. It does not list sessions."
    )

    async def open(self, directory: Path) -> None:
        self._file = directory / "sessions.db"
        self._sessions = {}

    async def _made(self, session: str) -> SQLiteSession:
        made = SQLiteSession(session, self._file)
        await _warmed(made)
        return made

    async def durability(self) -> str:
        with SQLiteSession("any", self._file)._locked_connection() as connection:
            return pragmas(lambda statement: connection.execute(statement).fetchone())

    async def close(self) -> None:
        for session in self._sessions.values():
            session.close()


async def _warmed(session: SQLiteSession) -> None:
    """Have every thread of the loop's pool open its connection: none goes on before all are there."""
    threads = ThreadPoolExecutor()._max_workers
    barrier = threading.Barrier(threads)

    def connect() -> None:
        with session._locked_connection():
            pass
        barrier.wait()

    await asyncio.gather(*(asyncio.to_thread(connect) for _ in range(threads)))
