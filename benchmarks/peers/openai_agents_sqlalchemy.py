"""openai-agents: ``SQLAlchemySession`` on PostgreSQL, an object for each session."""

from __future__ import annotations

from agents.extensions.memory import SQLAlchemySession
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.peers.openai_agents import Sessions
from benchmarks.peers.peer import flushing_of_postgres


class OpenAIAgentsSQLAlchemy(Sessions[SQLAlchemySession]):
    """All sessions share an engine, and with it a pool of connections."""

    name = "openai-agents, SQLAlchemy"
    used = (
        "SQLAlchemySession(session_id, engine=…), an object for a session, all on one create_async_engine"
        "('postgresql+asyncpg://…'), whose tables are there before; add_items with both messages, in one transaction;"
        " get_items. It orders messages by the time at which their transaction began, and does not list sessions."
    )

    async def open(self, url: str) -> None:
        self._sessions = {}
        self._engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:", 1))
        await SQLAlchemySession("any", engine=self._engine, create_tables=True).get_items()

    async def _made(self, session: str) -> SQLAlchemySession:
        return SQLAlchemySession(session, engine=self._engine)

    async def durability(self) -> str:
        async with self._engine.connect() as connection:
            return await flushing_of_postgres(lambda statement: connection.scalar(text(statement)))

    async def close(self) -> None:
        await self._engine.dispose()
