"""agent-framework: ``FileHistoryProvider``, a file of lines for each session, beside ``StateStoreHistoryProvider``."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Generic, TypeVar

from agent_framework import FileHistoryProvider, HistoryProvider, Message

from benchmarks.adapters.opened import OnSqlite
from statestore.adapters.agent_framework import StateStoreHistoryProvider

H = TypeVar("H", bound=HistoryProvider)


class _Histories(Generic[H]):
    """One provider for all sessions. No exchange is said twice: both would take it for one that came again."""

    _history: H
    _numbers: count[int]

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self.fill(session, 1, user_text, agent_text)

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        said = [
            Message(role, [f"{next(self._numbers):08} {text[9:]}"])
            for _ in range(exchanges)
            for role, text in (("user", user_text), ("assistant", agent_text))
        ]
        await self._history.save_messages(session, said)

    async def load(self, session: str) -> int:
        return len(await self._history.get_messages(session))

    def list_newest(self, count: int) -> None:
        return None


class Theirs(_Histories[FileHistoryProvider]):
    """As the framework ships it."""

    name = "agent-framework"
    package = "agent-framework-core"
    used = (
        "FileHistoryProvider(directory); save_messages with both, which reads the whole file each time to see what is"
        " new; get_messages. It flushes nothing, and does not list sessions."
    )

    async def open(self, directory: Path) -> None:
        self._numbers = count()
        self._history = FileHistoryProvider(directory / "history")

    def durability(self) -> str:
        return "appended, never flushed"

    async def close(self) -> None:
        """It keeps nothing open."""


class Ours(OnSqlite, _Histories[StateStoreHistoryProvider]):
    """One provider."""

    used = "StateStoreHistoryProvider(store); the same calls."

    async def open(self, directory: Path) -> None:
        self._numbers = count()
        self._history = StateStoreHistoryProvider(await self._store_in(directory))


class Relaxed(Ours):
    """What the framework's files promise: to survive a killed process, not a power cut."""

    name = "statestore, relaxed"
    asked = "relaxed"
    used = "The same, on a store that was opened with durability='relaxed', which promises what their files do."
