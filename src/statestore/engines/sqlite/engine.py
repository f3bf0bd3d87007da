"""`SqliteEngine`: the engine contract on one SQLite file."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from typing import Final, TypeVar

from statestore.engine import (
    AtomicScope,
    Batch,
    Changed,
    ChangePage,
    DocumentQuery,
    Outcome,
    Result,
    RunsIn,
    SearchQuery,
    SessionQuery,
)
from statestore.engines.catching_up import CatchingUp
from statestore.engines.judging import check_batch
from statestore.engines.options import CHANGES_KEPT, check_changes_kept, check_writable, is_durable
from statestore.engines.sqlite import listing, reading
from statestore.engines.sqlite.backing_up import back_up
from statestore.engines.sqlite.checking import check_everything
from statestore.engines.sqlite.compacting import compact
from statestore.engines.sqlite.connecting import DatabaseFile, Journal
from statestore.engines.sqlite.failures import explained
from statestore.engines.sqlite.finding import search_only, search_up_to
from statestore.engines.sqlite.indexing import (
    forget_index,
    has_index,
    has_seen,
    index_some,
    is_damage_of_index,
    last_change,
)
from statestore.engines.sqlite.migrating import check_schema, migrate
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.engines.sqlite.resting import RestingFile
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.upkeep import Upkeep
from statestore.engines.sqlite.watching import changed_since, present_cursor, read_changes
from statestore.engines.sqlite.writer import Writer
from statestore.engines.usage import Usage
from statestore.errors import CorruptData, InvalidValue, StoreNotFound
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SearchHit, SessionSummary, StoredSession

log = logging.getLogger("statestore")
T = TypeVar("T")

TIMEOUT: Final = 30.0


class SqliteEngine:
    """One SQLite file, written by one process at a time and read by any number at once.

    ``timeout`` is how many seconds to wait for another program's lock. ``journal`` is ``wal``, or ``rollback`` for
    network file systems; ``auto`` finds out. ``changes_kept`` is how many changes a watcher may be behind.
    """

    runs_in: RunsIn = "worker"
    atomic_scope: AtomicScope = "store"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        read_only: bool = False,
        durability: str = "full",
        timeout: float = TIMEOUT,
        journal: Journal = "auto",
        changes_kept: int = CHANGES_KEPT,
    ) -> None:
        if journal not in ("auto", "wal", "rollback"):
            raise InvalidValue(f"journal is 'auto', 'wal' or 'rollback', not {journal!r}")
        check_changes_kept(changes_kept)
        if not 0 <= timeout <= 2_000_000:
            raise InvalidValue(f"timeout is a number of seconds from 0 up, not {timeout!r}")
        with explained(os.fspath(path), timeout):  # a relative path in a directory that was removed
            self._file = file = DatabaseFile(
                os.fspath(path),
                timeout=timeout,
                journal=journal,
                is_durable=is_durable(durability),
                read_only=read_only,
            )
        self._path = self._file.path
        self._create = create
        self._read_only = read_only
        self._pool = ConnectionPool(file.connect, lambda: file.identity)  # not of self: a circle is collected late
        self._resting = RestingFile(self._file)
        self._turns = Turnstile(self._path, timeout)
        self._upkeep = Upkeep(self._file, self._turns, changes_kept=changes_kept)
        self._writer = Writer(self._file, self._pool, self._turns, self._upkeep)
        self._catching_up = CatchingUp()
        self._usage = Usage(self.url)

    @property
    def url(self) -> str:
        return f"sqlite:{self._path}"

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        self._file.prepare(create=self._create)
        with explained(self._path, self._file.timeout):
            try:
                if self._read_only:
                    self._check_readable()
                else:
                    self._turns.open()
                    with self._turns.turn(), self._pool.connection() as connection:
                        check_schema(connection, self._path)
                        self._file.mark_as_ours(connection)
                        self._file.set_journal(connection)
                        migrate(connection, self._path)
                        self._upkeep.tidy_after_others(connection)
                        self._upkeep.note_others(connection)
            except BaseException:
                self._let_go()
                raise
        self._usage.open()

    def _check_readable(self) -> None:
        if self._read_at_rest(lambda connection: check_schema(connection, self._path)) == 0:
            raise StoreNotFound.at(self._path, read_only=True)

    async def close(self) -> None:
        if self._usage.close():
            self._let_go()

    def _let_go(self) -> None:
        self._pool.close()
        self._resting.close()
        self._turns.close()

    # -- writing ---------------------------------------------------------------------------------------------

    async def commit(self, batch: Batch) -> list[Outcome]:
        check_writable(self, read_only=self._read_only)
        check_batch(batch)
        with self._usage:
            (result,) = self._writer.commit((batch,))
        if isinstance(result, Exception):
            raise result
        return result

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        check_writable(self, read_only=self._read_only)
        refused: dict[int, Exception] = {}
        for index, batch in enumerate(batches):
            try:
                check_batch(batch)
            except InvalidValue as error:
                refused[index] = error
        sound = [batch for index, batch in enumerate(batches) if index not in refused]
        with self._usage:
            results = iter(self._writer.commit(sound) if sound else [])
        return [refused.get(index) or next(results) for index in range(len(batches))]

    # -- reading ---------------------------------------------------------------------------------------------

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something that reads, on a connection of its own, while the store is open, and with errors of ours."""
        with self._usage, explained(self._path, self._file.timeout):
            self._file.check_is_there()
            if self._read_only:
                return self._read_at_rest(work)
            with self._pool.connection() as connection:
                return work(connection)

    def _read_at_rest(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Read without leaving a trace if nobody is writing, or else as one reader among others."""
        found = self._resting.read(work)
        if found is not None:
            return found[0]
        with self._pool.connection() as connection:
            return work(connection)

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        return self._read(lambda connection: reading.read_session(connection, session_id, after, before, last))

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return self._read(lambda connection: listing.list_sessions(connection, query))

    async def count_sessions(self, query: SessionQuery) -> int:
        return self._read(lambda connection: listing.count_sessions(connection, query))

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        return self._read(lambda connection: reading.get_document(connection, category, name, kind))

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        return self._read(lambda connection: reading.list_documents(connection, query))

    async def list_categories(self, prefix: str = "") -> list[str]:
        return self._read(lambda connection: reading.list_categories(connection, prefix))

    async def check(self) -> list[Problem]:
        return self._read(check_everything)

    # -- searching -------------------------------------------------------------------------------------------

    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        if self._read_only:
            return self._read(lambda connection: search_only(connection, query))
        return self._with_sound_index(lambda: self._search(query))

    def _search(self, query: SearchQuery) -> list[SearchHit]:
        last = self._read(last_change)  # what is written after this need not be found
        while (hits := self._read(lambda connection: search_up_to(connection, query, last))) is None:
            self._index_up_to(last)
        return hits

    async def update_search_index(self) -> None:
        check_writable(self, read_only=self._read_only)
        self._with_sound_index(self._update_index)

    def _update_index(self) -> None:
        if self._read(has_index):
            self._index_up_to(self._read(last_change))

    def _with_sound_index(self, work: Callable[[], T]) -> T:
        """Do something with the index of words; if that is damaged, do it again with one that is made anew."""
        try:
            return work()
        except CorruptData as error:
            if not is_damage_of_index(error.__cause__):
                raise
            log.warning("the index of words in %s is damaged, and is made anew: %s", self._path, error.__cause__)
        with self._usage, explained(self._path, self._file.timeout):
            self._writer.write(forget_index)
        return work()

    def _index_up_to(self, last: int) -> None:
        """Let the index catch up; one thread at a time, so that many searches do not queue up before writers."""
        with self._catching_up.lock:
            while not self._read(lambda connection: has_seen(connection, last)):
                with self._usage, explained(self._path, self._file.timeout):
                    self._writer.write(index_some)

    # -- watching --------------------------------------------------------------------------------------------

    async def change_cursor(self) -> str:
        return self._read(present_cursor)

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        return self._read(lambda connection: read_changes(connection, after, session_id, user_id, limit))

    async def changed_since(self, after: str) -> Changed:
        return self._read(lambda connection: changed_since(connection, after))

    # -- caring ----------------------------------------------------------------------------------------------

    async def compact(self) -> int:
        await self.update_search_index()
        with self._usage, explained(self._path, self._file.timeout):
            self._file.check_is_there()
            return compact(self._file, self._turns, self._pool, self._upkeep)

    async def backup(self, to: str) -> None:
        with self._usage, explained(self._path, self._file.timeout):
            if self._read_only and self._back_up_at_rest(to):
                return
            with self._pool.connection() as connection:
                back_up(connection, to, timeout=self._file.timeout)

    def _back_up_at_rest(self, to: str) -> bool:
        """Write a backup without leaving a trace beside the original, if nobody is writing; whether it was written."""
        with suppress(sqlite3.Error), closing(sqlite3.connect("")) as passing:
            # a file without a name, for which there may be no room: only then we know that nobody wrote
            if self._resting.read(lambda connection: connection.backup(passing)) is not None:
                back_up(passing, to, timeout=self._file.timeout)
                return True
        return False
