"""langgraph: a graph of one node, invoked once for each exchange, on whichever saver."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, MessagesState, StateGraph

Place = TypeVar("Place")
S = TypeVar("S", bound=BaseCheckpointSaver[Any])


async def _reply(state: MessagesState, config: RunnableConfig) -> dict[str, Any]:
    return {"messages": [AIMessage(config.get("configurable", {})["reply"])]}


def _config(session: str, reply: str = "") -> RunnableConfig:
    return {"configurable": {"thread_id": session, "reply": reply}}


class LangGraph(Generic[Place, S]):
    """The state is a list of messages; a checkpoint holds all of it."""

    name = "langgraph"
    package = "langgraph"
    _saver: S

    async def open(self, place: Place) -> None:
        self._stack = AsyncExitStack()
        self._saver = await self._stack.enter_async_context(self._connecting(place))
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

    async def close(self) -> None:
        await self._stack.aclose()

    @abstractmethod
    def _connecting(self, place: Place) -> AbstractAsyncContextManager[S]: ...
