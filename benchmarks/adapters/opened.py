"""The store under an adapter: one SQLite file, as it ships or relaxed, on the face that the framework calls.

Where a session is filled by many commits, a second store on the same file does it, one that does not wait for the disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from benchmarks.peers.ours import durability_of, sqlite_url
from statestore import AsyncStateStore, StateStore
from statestore.engine import Engine
from statestore.opening import Durability, engine_for


class _OnSqlite:
    """What both faces share."""

    name: ClassVar[str] = "statestore"
    package: ClassVar[str] = "statestore"
    asked: ClassVar[Durability] = "full"

    def _engine_in(self, directory: Path) -> Engine:
        self._engine = engine_for(sqlite_url(directory), durability=self.asked)
        return self._engine

    def durability(self) -> str:
        return durability_of(self._engine)


class OnSqlite(_OnSqlite):
    """For adapters that are asynchronous."""

    async def _store_in(self, directory: Path) -> AsyncStateStore:
        """The store that is measured."""
        store = await AsyncStateStore.open(self._engine_in(directory))
        self._beneath = [store]
        return store

    async def _unflushed_in(self, directory: Path) -> AsyncStateStore:
        """The store that fills, on the file of the one that is measured."""
        store = await AsyncStateStore.open(sqlite_url(directory), durability="relaxed")
        self._beneath.append(store)
        return store

    async def close(self) -> None:
        for store in self._beneath:
            await store.close()


class PlainlyOnSqlite(_OnSqlite):
    """For adapters that are plain."""

    def _store_in(self, directory: Path) -> StateStore:
        """The store that is measured."""
        store = StateStore.open(self._engine_in(directory))
        self._beneath = [store]
        return store

    def _unflushed_in(self, directory: Path) -> StateStore:
        """The store that fills, on the file of the one that is measured."""
        store = StateStore.open(sqlite_url(directory), durability="relaxed")
        self._beneath.append(store)
        return store

    def close(self) -> None:
        for store in self._beneath:
            store.close()
