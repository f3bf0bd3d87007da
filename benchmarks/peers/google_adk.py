"""google-adk: what its services share; the one that its ``sqlite:`` URLs stand for, and the one for any database."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Generic, TypeVar

import aiosqlite
from google.adk.events.event import Event
from google.adk.sessions import BaseSessionService, DatabaseSessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part
from sqlalchemy import text

from benchmarks.peers.peer import described, flushing_of_postgres

_APP, _USER = "app", "user"
Place = TypeVar("Place")
S = TypeVar("S", bound=BaseSessionService)


class Service(Generic[Place, S]):
    """Any service: an exchange is two events, each appended in a transaction of its own."""

    package = "google-adk"
    _service: S

    async def open(self, place: Place) -> None:
        self._sessions: dict[str, Session] = {}
        self._service = await self._made(place)

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self._say(self._service, session, user_text, agent_text)

    async def _say(self, service: BaseSessionService, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = await service.create_session(app_name=_APP, user_id=_USER, session_id=session)
        held = self._sessions[session]
        for author, role, content in (("user", "user", user_text), ("agent", "model", agent_text)):
            event = Event(author=author, invocation_id="run", content=Content(role=role, parts=[Part(text=content)]))
            await service.append_event(held, event)

    async def load(self, session: str) -> int:
        loaded = await self._service.get_session(app_name=_APP, user_id=_USER, session_id=session)
        return len(loaded.events) if loaded else 0

    async def list_newest(self, count: int) -> int:
        listed = (await self._service.list_sessions(app_name=_APP, user_id=_USER)).sessions
        return len(sorted(listed, key=lambda session: session.last_update_time, reverse=True)[:count])

    @abstractmethod
    async def _made(self, place: Place) -> S: ...


class _Unflushed(SqliteSessionService):
    """The service without its waiting, to fill sessions: one connection for all calls, whose commits nobody flushes."""

    _connection: aiosqlite.Connection | None = None

    @asynccontextmanager
    async def _get_db_connection(self) -> AsyncIterator[aiosqlite.Connection]:
        if self._connection is None:
            self._connection = await aiosqlite.connect(self._db_path)
            self._connection.row_factory = aiosqlite.Row
            await self._connection.execute("PRAGMA synchronous = OFF")
        yield self._connection

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class AdkSqlite(Service[Path, SqliteSessionService]):
    """What ``adk web`` and ``sqlite:`` URLs use."""

    name = "google-adk, sqlite"
    used = (
        "SqliteSessionService(db_path), which its command line uses for sqlite: URLs. append_event for each of the two"
        " messages; get_session; list_sessions has no limit, so all are listed and the newest taken. It opens a"
        " connection for each call."
    )

    async def _made(self, place: Path) -> SqliteSessionService:
        file = str(place / "adk.db")
        self._unflushed = _Unflushed(file)
        return SqliteSessionService(file)

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        for _ in range(exchanges):
            await self._say(self._unflushed, session, user_text, agent_text)

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))

    async def close(self) -> None:
        await self._unflushed.close()
        await self._service.close()

    async def _ask(self, statement: str) -> object:
        async with self._service._get_db_connection() as connection, connection.execute(statement) as cursor:
            row = await cursor.fetchone()
        return row[0] if row else None


class _AdkDatabase(Service[Place, DatabaseSessionService]):
    """What its documentation shows for a database of one's own."""

    name = "google-adk, database"

    async def close(self) -> None:
        await self._service.close()

    async def _ask(self, statement: str) -> object:
        async with self._service.db_engine.connect() as connection:
            return (await connection.execute(text(statement))).scalar()


class AdkDatabase(_AdkDatabase[Path]):
    """On SQLite."""

    used = "DatabaseSessionService('sqlite+aiosqlite:///…'), which keeps a pool of connections. The same calls."

    async def _made(self, place: Path) -> DatabaseSessionService:
        return DatabaseSessionService(f"sqlite+aiosqlite:///{place / 'adk.db'}")

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))


class AdkPostgres(_AdkDatabase[str]):
    """On PostgreSQL."""

    used = (
        "DatabaseSessionService('postgresql+asyncpg://…'). append_event for each of the two messages, in a transaction"
        " of its own that reads the session and two states first; get_session; list_sessions has no limit, so all are"
        " listed and the newest taken. It orders events by the clock of whoever appends them, and pings a connection"
        " before each use."
    )

    async def _made(self, place: str) -> DatabaseSessionService:
        return DatabaseSessionService(place.replace("postgresql:", "postgresql+asyncpg:", 1))

    async def durability(self) -> str:
        return await flushing_of_postgres(self._ask)
