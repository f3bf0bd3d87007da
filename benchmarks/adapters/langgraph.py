"""langgraph: ``AsyncSqliteSaver`` beside ``StateStoreSaver``, and the graph on a saver that does nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.adapters.opened import OnSqlite
from benchmarks.peers.langgraph_graph import LangGraph
from benchmarks.peers.langgraph_sqlite import LangGraphSqlite
from statestore.adapters.langgraph import StateStoreSaver

__all__ = ["GraphAlone", "LangGraphSqlite", "Ours"]


class Ours(OnSqlite, LangGraph[Path, StateStoreSaver]):
    """The same graph on our saver."""

    used = "StateStoreSaver(store) under the same graph; the same calls."

    @asynccontextmanager
    async def _connecting(self, place: Path) -> AsyncIterator[StateStoreSaver]:
        async with await self._store_in(place) as store:
            yield StateStoreSaver(store)

    async def close(self) -> None:
        await LangGraph.close(self)


class NoSaver(InMemorySaver):
    """Keeps the last state of each thread as it is, and copies nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, CheckpointTuple] = {}

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._last.get(_thread(config))

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: Any
    ) -> RunnableConfig:
        place = {"thread_id": _thread(config), "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}
        found: RunnableConfig = {"configurable": place}
        kept: Any = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
        self._last[_thread(config)] = CheckpointTuple(found, kept, metadata, None, [])
        return found

    async def aput_writes(self, *_: Any, **__: Any) -> None:
        """Nothing is kept."""


def _thread(config: RunnableConfig) -> str:
    return config.get("configurable", {})["thread_id"]


class GraphAlone(LangGraph[Path, NoSaver]):
    """What a turn costs before any saver does anything."""

    name = "graph alone"
    used = "The same graph on a saver that keeps the last state in memory and copies nothing."

    @asynccontextmanager
    async def _connecting(self, place: Path) -> AsyncIterator[NoSaver]:
        yield NoSaver()

    def durability(self) -> str:
        return "nothing is kept"
