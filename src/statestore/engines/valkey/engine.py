"""`ValkeyEngine`: the engine contract on one Valkey or Redis server."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import AtomicScope, Batch, ChangePage, Outcome, Result, RunsIn, SessionQuery
from statestore.engines.grouping import Grouping
from statestore.engines.judging import check_batch
from statestore.engines.options import CHANGES_KEPT, check_changes_kept
from statestore.engines.valkey import listing, watching
from statestore.engines.valkey.address import Address
from statestore.engines.valkey.calling import ServerCaller
from statestore.engines.valkey.planning import Planner
from statestore.engines.valkey.storage import Storage
from statestore.engines.valkey.writing import BatchWriter
from statestore.errors import StoreUnavailable
from statestore.stored import SessionSummary


class ValkeyEngine(Storage):
    """A store on one server. A batch is one call of a script; what many tasks want goes in one round trip.

    ``changes_kept`` is how many changes a watcher may be behind, at least.
    """

    runs_in: RunsIn = "loop"
    atomic_scope: AtomicScope = "store"

    def __init__(
        self,
        address: Address,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: str = "full",
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        self._server = ServerCaller(address)
        super().__init__(self._server, create=create, read_only=read_only, durability=durability)
        check_changes_kept(changes_kept)
        planner = Planner(self._keys, ttl=address.ttl_ms, changes_kept=changes_kept, has_indexes=True)
        self._writer = BatchWriter(self._caller, planner)
        self._grouping = Grouping(self._writer.make_all, patience=address.timeout)

    async def _look_at_server(self) -> None:
        if await self._server.is_in_cluster():
            raise StoreUnavailable(f"{self.url} is a node of a cluster: add cluster=true to the URL's options")

    # -- writing

    async def commit(self, batch: Batch) -> list[Outcome]:
        self._check_writable()
        check_batch(batch)
        with self._calls:
            return await self._grouping.commit(batch) if batch else []

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        self._check_writable()
        with self._calls:
            return await self._writer.make_all(batches)

    # -- reading

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        with self._calls:
            return await listing.list_sessions(self._caller, self._keys, query, may_clean=not self._read_only)

    async def count_sessions(self, query: SessionQuery) -> int:
        with self._calls:
            return await listing.count_sessions(self._caller, self._keys, query, may_clean=not self._read_only)

    async def list_categories(self, prefix: str = "") -> list[str]:
        with self._calls:
            return await listing.list_categories(self._caller, self._keys, prefix)

    # -- watching

    async def change_cursor(self) -> str:
        with self._calls:
            return await watching.present_cursor(self._caller, self._keys)

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        with self._calls:
            return await watching.read_changes(self._caller, self._keys, after, session_id, user_id, limit)
