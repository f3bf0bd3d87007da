"""langgraph on ``AsyncSqliteSaver``."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.peers.langgraph_graph import LangGraph
from benchmarks.peers.peer import described


class LangGraphSqlite(LangGraph[Path, AsyncSqliteSaver]):
    """A file."""

    used = (
        f"AsyncSqliteSaver (langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}) under a compiled"
        " StateGraph(MessagesState) whose one node returns the reply; ainvoke once for an exchange, and aget_state."
        " Each invocation reads the state and stores several checkpoints of the whole list: the time includes the"
        " graph's own work. Long sessions are filled by one aupdate_state. It lists checkpoints, not sessions."
    )

    def _connecting(self, place: Path) -> AbstractAsyncContextManager[AsyncSqliteSaver]:
        return AsyncSqliteSaver.from_conn_string(str(place / "checkpoints.db"))

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))

    async def _ask(self, statement: str) -> object:
        async with self._saver.conn.execute(statement) as cursor:
            row = await cursor.fetchone()
        return row[0] if row else None
