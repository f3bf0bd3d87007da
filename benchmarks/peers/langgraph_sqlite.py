"""langgraph: a graph of one node on ``AsyncSqliteSaver``, invoked once for each exchange."""

from __future__ import annotations

from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from benchmarks.peers.peer import described


async def _reply(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    return {"messages": [AIMessage(config.get("configurable", {})["reply"])]}


def _config(session: str, reply: str = "") -> RunnableConfig:
    return {"configurable": {"thread_id": session, "reply": reply}}


class LangGraph:
    """The state is a list of messages; a checkpoint holds all of it."""

    name = "langgraph"
    package = "langgraph"
    used = (
        f"AsyncSqliteSaver (langgraph-checkpoint-sqlite {version('langgraph-checkpoint-sqlite')}) under a compiled"
        " StateGraph(MessagesState) whose one node returns the reply; ainvoke once for an exchange, and aget_state."
        " Each invocation reads the state and stores several checkpoints of the whole list: the time includes the"
        " graph's own work. Long sessions are filled by one aupdate_state. It lists checkpoints, not sessions."
    )

    async def open(self, directory: Path) -> None:
        self._stack = AsyncExitStack()
        connecting = AsyncSqliteSaver.from_conn_string(str(directory / "checkpoints.db"))
        self._saver = await self._stack.enter_async_context(connecting)
        builder = StateGraph(MessagesState)
        builder.add_node("agent", _reply)
        builder.add_edge(START, "agent")
        builder.add_edge("agent", END)
        self._graph = builder.compile(checkpointer=self._saver)

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self._graph.ainvoke({"messages": [HumanMessage(user_text)]}, _config(session, agent_text))

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        messages = [
            kind(content)
            for _ in range(exchanges)
            for kind, content in ((HumanMessage, user_text), (AIMessage, agent_text))
        ]
        await self._graph.aupdate_state(_config(session), {"messages": messages}, as_node="agent")

    async def load(self, session: str) -> int:
        return len((await self._graph.aget_state(_config(session))).values["messages"])

    def list_newest(self, count: int) -> None:
        return None

    async def durability(self) -> str:
        return described(await self._ask("PRAGMA journal_mode"), await self._ask("PRAGMA synchronous"))

    async def _ask(self, statement: str) -> object:
        async with self._saver.conn.execute(statement) as cursor:
            row = await cursor.fetchone()
        return row[0] if row else None

    async def close(self) -> None:
        await self._stack.aclose()
