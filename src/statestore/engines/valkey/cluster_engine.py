"""`ValkeyClusterEngine`: the engine contract on a Valkey or Redis cluster, one item at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statestore.engine import AtomicScope, Batch, Outcome, Result, RunsIn, SessionQuery
from statestore.engines.grouping import Grouping
from statestore.engines.valkey import cluster_listing
from statestore.engines.valkey.address import Address
from statestore.engines.valkey.cluster_calling import ClusterCaller
from statestore.engines.valkey.cluster_writing import ClusterWriter
from statestore.engines.valkey.planning import Planner
from statestore.engines.valkey.storage import Storage
from statestore.stored import SessionSummary

LANES: Final = 4
"""How many groups are under way at once: their nodes are not the same ones."""


class ValkeyClusterEngine(Storage):
    """A store on a cluster. Each session lies whole on one node, and changes whole; so does each category.

    What lies on several nodes cannot change together: a batch names one item. Listings are kept elsewhere and written
    right after the session.
    """

    runs_in: RunsIn = "loop"
    atomic_scope: AtomicScope = "item"

    def __init__(
        self, address: Address, *, create: bool = True, read_only: bool = False, durability: str = "full"
    ) -> None:
        super().__init__(ClusterCaller(address), create=create, read_only=read_only, durability=durability)
        planner = Planner(self._keys, ttl=address.ttl_ms, changes_kept=0, has_indexes=False)
        self._writer = ClusterWriter(self._caller, self._keys, planner)
        self._grouping = Grouping(self._writer.make_all, lanes=LANES, patience=address.timeout)

    async def _look_at_server(self) -> None:
        """That it is a cluster was seen when it told who has which slots."""

    async def commit(self, batch: Batch) -> list[Outcome]:
        self._check_writable()
        self._writer.check(batch)
        with self._calls:
            return await self._grouping.commit(batch) if batch else []

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        self._check_writable()
        with self._calls:
            return await self._writer.make_all(batches)

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        with self._calls:
            return await cluster_listing.list_sessions(self._caller, self._keys, query, may_clean=not self._read_only)

    async def count_sessions(self, query: SessionQuery) -> int:
        with self._calls:
            return await cluster_listing.count_sessions(self._caller, self._keys, query, may_clean=not self._read_only)

    async def list_categories(self, prefix: str = "") -> list[str]:
        with self._calls:
            return await cluster_listing.list_categories(self._caller, self._keys, prefix)
