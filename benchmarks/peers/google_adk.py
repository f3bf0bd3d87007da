"""google-adk: the service that its ``sqlite:`` URLs stand for, and the one for any database, here on two."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from google.adk.events.event import Event
from google.adk.sessions import DatabaseSessionService, Session
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, Part
from sqlalchemy import text

from benchmarks.peers.peer import described, flushing_of_postgres

_APP, _USER = "app", "user"
Place = TypeVar("Place")
S = TypeVar("S", SqliteSessionService, DatabaseSessionService)


class _Adk(Generic[Place, S]):
    """Both services: an exchange is two events, each appended in a transaction of its own."""

    package = "google-adk"
    _service: S

    async def open(self, place: Place) -> None:
        self._sessions: dict[str, Session] = {}
        self._service = self._made(place)

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = await self._service.create_session(
                app_name=_APP, user_id=_USER, session_id=session
            )
        held = self._sessions[session]
        for author, role, content in (("user", "user", user_text), ("agent", "model", agent_text)):
            event = Event(author=author, invocation_id="run", content=Content(role=role, parts=[Part(text=content)]))
            await self._service.append_event(held, event)

    async def load(self, session: str) -> int:
        loaded = await self._service.get_session(app_name=_APP, user_id=_USER, session_id=session)
        return len(loaded.events) if loaded else 0

    async def list_newest(self, count: int) -> int:
        listed = (await self._service.list_sessions(app_name=_APP, user_id=_USER)).sessions
        return len(sorted(listed, key=lambda session: session.last_update_time, reverse=True)[:count])

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))

    async def close(self) -> None:
        await self._service.close()

    @abstractmethod
    def _made(self, place: Place) -> S: ...

    @abstractmethod
    async def _ask(self, statement: str) -> object: ...


class AdkSqlite(_Adk[Path, SqliteSessionService]):
    """What ``adk web`` and ``sqlite:`` URLs use."""

    name = "google-adk, sqlite"
    used = (
        "SqliteSessionService(db_path), which its command line uses for sqlite: URLs. append_event for each of the two"
        " messages; get_session; list_sessions has no limit, so all are listed and the newest taken. It opens a"
        " connection for each call."
    )

    def _made(self, place: Path) -> SqliteSessionService:
        return SqliteSessionService(str(place / "adk.db"))

    async def _ask(self, statement: str) -> object:
        async with self._service._get_db_connection() as connection, connection.execute(statement) as cursor:
            row = await cursor.fetchone()
        return row[0] if row else None


class _AdkDatabase(_Adk[Place, DatabaseSessionService]):
    """What its documentation shows for a database of one's own."""

    name = "google-adk, database"

    async def _ask(self, statement: str) -> object:
        async with self._service.db_engine.connect() as connection:
            return (await connection.execute(text(statement))).scalar()


class AdkDatabase(_AdkDatabase[Path]):
    """On SQLite."""

    used = "DatabaseSessionService('sqlite+aiosqlite:///…'), which keeps a pool of connections. The same calls."

    def _made(self, place: Path) -> DatabaseSessionService:
        return DatabaseSessionService(f"sqlite+aiosqlite:///{place / 'adk.db'}")


class AdkPostgres(_AdkDatabase[str]):
    """On PostgreSQL."""

    used = (
        "DatabaseSessionService('postgresql+asyncpg://…'). append_event for each of the two messages, in a transaction"
        " of its own that reads the session and two states first; get_session; list_sessions has no limit, so all are"
        " listed and the newest taken. It orders events by the clock of whoever appends them, and pings a connection"
        " before each use."
    )

    def _made(self, place: str) -> DatabaseSessionService:
        return DatabaseSessionService(place.replace("postgresql:", "postgresql+asyncpg:", 1))

    async def durability(self) -> str:
        return await flushing_of_postgres(self._ask)
