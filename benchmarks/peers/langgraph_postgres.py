"""langgraph on ``AsyncPostgresSaver``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from benchmarks.peers.langgraph_graph import LangGraph
from benchmarks.peers.peer import flushing_of_postgres

VERSION = version("langgraph-checkpoint-postgres")


class LangGraphPostgres(LangGraph[str, AsyncPostgresSaver]):
    """A database."""

    used = (
        f"AsyncPostgresSaver.from_conn_string (langgraph-checkpoint-postgres {VERSION}), which has one connection that"
        " all tasks take turns on, and setup. The same graph as on SQLite, the same calls: each invocation stores"
        " several checkpoints, and the whole list for each change of it. It lists checkpoints, not sessions."
    )

    @asynccontextmanager
    async def _connecting(self, place: str) -> AsyncIterator[AsyncPostgresSaver]:
        async with AsyncPostgresSaver.from_conn_string(place) as saver:
            await saver.setup()
            yield saver

    async def durability(self) -> str:
        return await flushing_of_postgres(self._ask)

    async def _ask(self, statement: str) -> object:
        async with self._saver._cursor() as cursor:
            row = await (await cursor.execute(statement.encode())).fetchone()
        return next(iter(row.values())) if row else None
