"""agent-framework's workflows: ``FileCheckpointStorage`` beside ``StateStoreCheckpointStorage``.

A session is a workflow, an exchange a checkpoint of it, and to load it is to find the latest.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from agent_framework import CheckpointStorage, FileCheckpointStorage, WorkflowCheckpoint

from benchmarks.adapters.opened import OnSqlite
from statestore.adapters.agent_framework import StateStoreCheckpointStorage

C = TypeVar("C", bound=CheckpointStorage)


class _Checkpoints(Generic[C]):
    """The state counts what was said, which proves that the latest is the latest."""

    _said: dict[str, int]

    @abstractmethod
    def _storage(self, session: str) -> C: ...

    def _filling(self, session: str) -> C:
        """The storage that workflows are filled with."""
        return self._storage(session)

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self._save(self._storage(session), session, user_text, agent_text)

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        for _ in range(exchanges):
            await self._save(self._filling(session), session, user_text, agent_text)

    async def _save(self, storage: C, session: str, user_text: str, agent_text: str) -> None:
        self._said[session] = self._said.get(session, 0) + 2
        state = {"said": self._said[session], "texts": (user_text, agent_text)}
        await storage.save(WorkflowCheckpoint(session, "hash", state=state))

    async def load(self, session: str) -> int:
        latest = await self._storage(session).get_latest(workflow_name=session)
        return latest.state["said"] if latest else 0

    def list_newest(self, count: int) -> None:
        return None


class Theirs(_Checkpoints[FileCheckpointStorage]):
    """As the framework ships it."""

    name = "agent-framework, checkpoints"
    package = "agent-framework-core"
    used = (
        "FileCheckpointStorage(directory), a directory for each workflow, a file for each checkpoint; save; get_latest,"
        " which reads all files of its directory. It flushes nothing."
    )

    async def open(self, directory: Path) -> None:
        self._said = {}
        self._directory = directory

    def _storage(self, session: str) -> FileCheckpointStorage:
        return FileCheckpointStorage(self._directory / session)

    def durability(self) -> str:
        return "renamed, never flushed"

    async def close(self) -> None:
        """It keeps nothing open."""


class Ours(OnSqlite, _Checkpoints[StateStoreCheckpointStorage]):
    """One storage for all workflows."""

    used = "StateStoreCheckpointStorage(store); the same calls."

    async def open(self, directory: Path) -> None:
        self._said = {}
        self._measured = StateStoreCheckpointStorage(await self._store_in(directory))
        self._unflushed = StateStoreCheckpointStorage(await self._unflushed_in(directory))

    def _storage(self, session: str) -> StateStoreCheckpointStorage:
        return self._measured

    def _filling(self, session: str) -> StateStoreCheckpointStorage:
        return self._unflushed


class Relaxed(Ours):
    """What the framework's files promise: to survive a killed process, not a power cut."""

    name = "statestore, relaxed"
    asked = "relaxed"
    used = "The same, on a store that was opened with durability='relaxed', which promises what their files do."
