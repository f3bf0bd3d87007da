"""statestore: the asynchronous face on any engine, and both faces on SQLite."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar, cast

from benchmarks.peers.peer import pragmas
from statestore import AgentResponse, AsyncStateStore, StateStore, UserMessage
from statestore.engine import Engine
from statestore.engines.sqlite.engine import SqliteEngine
from statestore.opening import engine_for

Place = TypeVar("Place")


def sqlite_url(directory: Path) -> str:
    """One file in that directory."""
    return f"sqlite:{directory}/state.db"


def durability_of(engine: Engine) -> str:
    """What a connection of this SQLite engine tells of itself."""
    with cast(SqliteEngine, engine)._pool.connection() as connection:
        return pragmas(lambda statement: connection.execute(statement).fetchone())


class AsyncFace(Generic[Place]):
    """The asynchronous face, on the engine of a URL."""

    name = "statestore"
    package = "statestore"

    async def open(self, place: Place) -> None:
        self._engine = engine_for(self._url(place))
        self._store = await AsyncStateStore.open(self._engine)
        self._known: set[str] = set()

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._known:
            self._known.add(session)
            await self._store.get_or_create_session("user", session)
        await self._store.append(session, UserMessage(user_text), AgentResponse(agent_text))

    async def load(self, session: str) -> int:
        loaded = await self._store.load_session(session)
        return len(loaded.user_messages) + len(loaded.agent_responses) if loaded else 0

    async def list_newest(self, count: int) -> int:
        return len(await self._store.list_sessions(limit=count))

    async def close(self) -> None:
        await self._store.close()

    @abstractmethod
    def _url(self, place: Place) -> str: ...


class AsyncOurs(AsyncFace[Path]):
    """One SQLite file."""

    used = "AsyncStateStore.open('sqlite:…'): append of both messages, load_session, list_sessions(limit=50)."

    def _url(self, place: Path) -> str:
        return sqlite_url(place)

    async def durability(self) -> str:
        return durability_of(self._engine)


class PlainOurs:
    """The plain face."""

    name = "statestore, plain"
    package = "statestore"
    used = "StateStore on the same engine: the same methods, without an event loop."

    def open(self, directory: Path) -> None:
        self._engine = engine_for(sqlite_url(directory))
        self._store = StateStore.open(self._engine)
        self._known: set[str] = set()

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._known:
            self._known.add(session)
            self._store.get_or_create_session("user", session)
        self._store.append(session, UserMessage(user_text), AgentResponse(agent_text))

    def load(self, session: str) -> int:
        loaded = self._store.load_session(session)
        return len(loaded.user_messages) + len(loaded.agent_responses) if loaded else 0

    def list_newest(self, count: int) -> int:
        return len(self._store.list_sessions(limit=count))

    def durability(self) -> str:
        return durability_of(self._engine)

    def close(self) -> None:
        self._store.close()
