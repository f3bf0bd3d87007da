"""The contract can be kept in other ways than ours: in an event loop, in worker threads, item by item."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from statestore.conformance import EngineContract
from statestore.engine import Change, DocumentQuery, Outcome, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.errors import NotSupported
from statestore.stored import Document, DocumentInfo, DocumentKind, SessionSummary, StoredSession


class LoopEngine(MemoryEngine):
    """Suspends before everything it does, as one does that talks to a server."""

    runs_in = "loop"

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        await asyncio.sleep(0)
        return await super().commit(batch)

    async def read_session(self, session_id: str, **window: int | None) -> StoredSession | None:
        await asyncio.sleep(0)
        return await super().read_session(session_id, **window)

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        await asyncio.sleep(0)
        return await super().list_sessions(query)

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        await asyncio.sleep(0)
        return await super().get_document(category, name, kind)

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        await asyncio.sleep(0)
        return await super().list_documents(query)


class WorkerEngine(MemoryEngine):
    """Is handed to threads."""

    runs_in = "worker"


class ItemEngine(MemoryEngine):
    """Cannot change two items at once, and says so."""

    atomic_scope = "item"

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        if len(batch) > 1:
            raise NotSupported("this engine changes one item at a time")
        return await super().commit(batch)


class Shared(MemoryEngine):
    """Several engines on what one place holds."""

    url = "shared:"
    _places: dict[Path, dict[str, Any]] = {}

    def __init__(self, place: Path) -> None:
        super().__init__()
        vars(self).update(self._places.setdefault(place, vars(self).copy()))


class TestLoopEngine(EngineContract):
    reopens = False
    examples = 10

    def make_engine(self, place: Path) -> LoopEngine:
        return LoopEngine()


class TestWorkerEngine(EngineContract):
    reopens = False
    examples = 5

    def make_engine(self, place: Path) -> WorkerEngine:
        return WorkerEngine()


class TestItemEngine(EngineContract):
    reopens = False
    examples = 10

    def make_engine(self, place: Path) -> ItemEngine:
        return ItemEngine()


class TestSharedEngine(EngineContract):
    examples = 10

    def make_engine(self, place: Path) -> Shared:
        return Shared(place)
