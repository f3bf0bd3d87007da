"""`PostgresEngine`: the engine contract on a schema of a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from statestore.engine import (
    AtomicScope,
    Batch,
    ChangePage,
    DocumentQuery,
    Outcome,
    Result,
    RunsIn,
    SearchQuery,
    SessionQuery,
)
from statestore.engines.calls import Calls
from statestore.engines.grouping import Grouping
from statestore.engines.options import CHANGES_KEPT, check_changes_kept, check_writable, is_durable
from statestore.engines.postgres import listing, reading
from statestore.engines.postgres.catching_up import CatchingUp
from statestore.engines.postgres.checking import check_everything
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import is_passing, is_temporary_at_first
from statestore.engines.postgres.finding import search, search_only
from statestore.engines.postgres.indexing import state_of
from statestore.engines.postgres.migrating import MIGRATIONS, migrate, version_of
from statestore.engines.postgres.persisting import Attempt, Persistence
from statestore.engines.postgres.pool import Pool
from statestore.engines.postgres.servers import Address, Login, Servers
from statestore.engines.postgres.tidying import Tidying
from statestore.engines.postgres.waking import BLINK, Waking
from statestore.engines.postgres.watching import Watching
from statestore.engines.postgres.writing import Locked, Writer
from statestore.engines.telling import Moment
from statestore.errors import InvalidValue, StoreClosed, StoreNotFound, StoreUnavailable
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SearchHit, SessionSummary, StoredSession

T = TypeVar("T")

SCHEMA: Final = "statestore"
TIMEOUT: Final = 30.0
CONNECTIONS: Final = 10
LANES: Final = 2
"""How many groups of batches are made at the same time, each on a connection of its own."""


class PostgresEngine:
    """A schema of a PostgreSQL database, for any number of processes on any number of machines.

    ``timeout`` is how many seconds a call may take in all, a fail-over to another server included. ``connections`` is
    how many there are at most, but for one on which watchers are told. ``changes_kept`` is how many changes a watcher
    may be behind.
    """

    runs_in: RunsIn = "loop"
    atomic_scope: AtomicScope = "store"

    def __init__(
        self,
        login: Login,
        addresses: Sequence[Address],
        *,
        url: str,
        schema: str = SCHEMA,
        create: bool = True,
        read_only: bool = False,
        durability: str = "full",
        timeout: float = TIMEOUT,
        connections: int = CONNECTIONS,
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        if not 0 < timeout <= 1_000_000:
            raise InvalidValue(f"timeout is a number of seconds above 0, not {timeout!r}")
        if connections < 1:
            raise InvalidValue(f"connections is a whole number from 1 up, not {connections!r}")
        check_changes_kept(changes_kept)
        self._url = url
        self._schema = schema
        self._create = create
        self._read_only = read_only
        self._timeout = timeout
        self._connections = connections
        self._changes_kept = changes_kept
        settings = _settings(schema, timeout, is_durable=is_durable(durability), read_only=read_only)
        self._servers = Servers(login, addresses, needs_writes=not read_only, settings=settings)
        self._begin()

    def _begin(self) -> None:
        """Make all that belongs to one event loop: an engine that was closed may be opened again in another one."""
        self._pool = Pool(self._servers.connect, size=self._connections)
        self._persistence = Persistence(self._pool, url=self._url, timeout=self._timeout)
        self._writer = Writer(self._persistence, waiting=max(self._connections // 2, 1))
        self._grouping = Grouping(self._commit_group, lanes=min(LANES, self._connections), patience=self._timeout)
        self._waking = Waking(self._pool, self._persistence, timeout=self._timeout)
        self._watching = Watching(self._persistence)
        self._catching_up = CatchingUp(self._read)
        self._tidying = Tidying(self._persistence, changes_kept=self._changes_kept)
        self._calls = Calls(self._url)

    @property
    def url(self) -> str:
        return self._url

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        self._begin()
        await self._pool.open()
        is_reached = False

        async def prepare(connection: Connection, _: Attempt) -> None:
            nonlocal is_reached
            is_reached = True
            await self._prepare(connection)

        try:
            await self._persistence.run(
                prepare, may_pass=lambda error: is_passing(error) if is_reached else is_temporary_at_first(error)
            )
        except BaseException:
            await self._pool.close(self._timeout)
            raise
        self._calls.open()

    async def _prepare(self, connection: Connection) -> None:
        """Find a store of the present version in the schema, or make one."""
        version = await version_of(connection, self._schema, self._url)
        if version == len(MIGRATIONS):
            return
        if not version and (self._read_only or not self._create):
            raise StoreNotFound.at(f"{self._url}, schema {self._schema}", read_only=self._read_only)
        if self._read_only:
            raise StoreUnavailable(
                f"{self._url} has the schema version {version}, and this statestore reads {len(MIGRATIONS)}: "
                "open it once for writing, which brings it up to date"
            )
        await migrate(connection, self._schema, self._url)

    async def close(self) -> None:
        """Wait for calls under way, then let go of all connections; if it is called off, that goes on by itself."""
        await asyncio.shield(asyncio.create_task(self._let_go(), name="statestore-closing"))

    async def _let_go(self) -> None:
        try:
            with self._calls:
                self._waking.close()
        except StoreClosed:  # it is not open, or in another process or loop, and not ours to close
            return
        await self._grouping.close()
        if await self._calls.close():
            await self._tidying.close()
            await self._pool.close(self._timeout)

    # -- writing ---------------------------------------------------------------------------------------------

    async def commit(self, batch: Batch) -> list[Outcome]:
        check_writable(self, read_only=self._read_only)
        with self._calls:
            end = self._persistence.end_of_call()
            try:
                return await self._grouping.commit(batch)
            except Locked:
                return await Grouping(lambda alone: self._writer.commit_locked(alone, end)).commit(batch)

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        check_writable(self, read_only=self._read_only)
        with self._calls:
            end = self._persistence.end_of_call()
            results = await self._commit_group(batches)
            locked = [index for index, result in enumerate(results) if isinstance(result, Locked)]
            made = await self._writer.commit_locked([batches[index] for index in locked], end)
            for index, result in zip(locked, made, strict=True):
                results[index] = result
            return results

    async def _commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        results = await self._writer.commit_group(batches)
        self._tidying.note(len(batches))
        return results

    # -- reading ---------------------------------------------------------------------------------------------

    async def _read(self, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Do something that reads, on a connection, while the store is open."""
        with self._calls:
            return await self._persistence.run(lambda connection, _: work(connection, *arguments))

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        return await self._read(reading.read_session, session_id, after, before, last)

    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        """Those of some sessions that are small and can be read, whole; the others are to be read one by one."""
        return await self._read(reading.read_sessions, ids)

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return await self._read(listing.list_sessions, query)

    async def count_sessions(self, query: SessionQuery) -> int:
        return await self._read(listing.count_sessions, query)

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        return await self._read(reading.get_document, category, name, kind)

    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        """Those of some documents that are small; the others are to be read one by one."""
        return await self._read(reading.get_documents, category, places)

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        return await self._read(reading.list_documents, query)

    async def list_categories(self, prefix: str = "") -> list[str]:
        return await self._read(reading.list_categories, prefix)

    async def check(self) -> list[Problem]:
        with self._calls:
            return await self._persistence.run(check_everything)

    # -- searching -------------------------------------------------------------------------------------------

    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        if self._read_only:
            with self._calls:
                return await self._persistence.run(lambda connection, attempt: search_only(connection, attempt, query))
        await self._catching_up.to_present()
        return await self._read(search, query)

    async def update_search_index(self) -> None:
        check_writable(self, read_only=self._read_only)
        if (await self._read(state_of)).rules:  # else nobody ever searched
            await self._catching_up.to_present()

    # -- watching --------------------------------------------------------------------------------------------

    async def change_cursor(self) -> str:
        with self._calls:
            return await self._watching.present_cursor()

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        with self._calls:
            return await self._watching.read_changes(after, session_id, user_id, limit)

    async def wait_for_changes(self, after: str, seconds: float) -> None:
        moment = Moment.parse(after)
        with self._calls, self._waking.sleeper() as awake:
            longest = BLINK if self._read_only else await self._waking.longest_wait(moment)
            with suppress(TimeoutError):
                async with asyncio.timeout(min(longest, seconds)):
                    await awake.wait()


def _settings(schema: str, timeout: float, *, is_durable: bool, read_only: bool) -> dict[str, str]:
    """What each connection is told when it is made, whatever the role or the database has for a default."""
    settings = {
        "application_name": "statestore",
        "plan_cache_mode": "force_generic_plan",  # our statements are all by key: to plan each call takes longer
        "jit": "off",
        "search_path": f'"{schema}"',
        "statement_timeout": f"{max(int(timeout * 1000), 1)}ms",
        "lock_timeout": "0",  # how long a lock is waited for is told with each commit
        "idle_in_transaction_session_timeout": f"{max(int(timeout * 1000), 1)}ms",
        "default_transaction_isolation": "read committed",  # who waited for a lock has to see what happened meanwhile
        "default_transaction_read_only": "on" if read_only else "off",
    }
    if not is_durable:
        settings["synchronous_commit"] = "off"
    return settings
