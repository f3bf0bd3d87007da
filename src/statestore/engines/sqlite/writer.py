"""The one place of a store that writes: in turn with other processes, in groups, and the log kept short."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from statestore.engine import PreconditionFailed
from statestore.engines.sqlite.connecting import DatabaseFile
from statestore.engines.sqlite.failures import explanation, is_lock_timeout
from statestore.engines.sqlite.gathering import Batch, Entry, Gathering, Result
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.writing import Transaction
from statestore.errors import StateStoreError

T = TypeVar("T")
log = logging.getLogger("statestore")

COMMITS_BETWEEN_CHECKPOINTS: Final = 500
WAL_IS_LARGE: Final = 32 * 1024 * 1024


class Writer:
    """Makes batches of changes, durably."""

    def __init__(self, file: DatabaseFile, pool: ConnectionPool, turns: Turnstile, *, changes_kept: int) -> None:
        self._file = file
        self._pool = pool
        self._turns = turns
        self._changes_kept = changes_kept
        self._commits = 0
        self._gathering = Gathering(self._make_entries)

    def commit(self, batches: Sequence[Batch]) -> list[Result]:
        """Make some batches, each wholly or not at all; what became of each."""
        return self._gathering.commit(batches)

    def _make_entries(self, entries: list[Entry]) -> None:
        batches = [batch for entry in entries for batch in entry.batches]
        results = self._make(batches)
        for entry in entries:
            count = len(entry.batches)
            entry.results, results = results[:count], results[count:]

    def _make(self, batches: list[Batch]) -> list[Result]:
        try:
            self._turns.take()
            try:
                return self._with_connection(batches)
            finally:
                self._turns.hand_on()
        except (sqlite3.Error, OSError) as error:
            failure = explanation(error, self._file.path, self._file.timeout)
            failure.__cause__ = error
            return [failure for _ in batches]
        except StateStoreError as error:
            return [error for _ in batches]

    def _with_connection(self, batches: list[Batch]) -> list[Result]:
        self._file.check_is_there()
        connection = self._pool.lend()
        is_sound = False
        try:
            results = self._in_one_transaction(connection, batches)
            self._count(connection)
            is_sound = True
            return results
        finally:
            self._pool.give_back(connection, is_sound=is_sound)

    def _in_one_transaction(self, connection: sqlite3.Connection, batches: list[Batch]) -> list[Result]:
        """Make all batches together; or, if that fails for any of them, each one alone."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            transaction = Transaction(connection)
            transaction.expect(batches)
            results: list[Result] = []
            for batch in batches:
                try:
                    results.append(transaction.make(batch))
                except PreconditionFailed as failed:
                    results.append(failed)
            transaction.flush()
            connection.execute("COMMIT")
            return results
        except BaseException as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            if len(batches) == 1 or not isinstance(error, Exception) or is_lock_timeout(error):
                raise
        return [self._alone(connection, batch) for batch in batches]

    def _alone(self, connection: sqlite3.Connection, batch: Batch) -> Result:
        try:
            (result,) = self._in_one_transaction(connection, [batch])
        except (sqlite3.Error, OSError) as error:
            failure = explanation(error, self._file.path, self._file.timeout)
            failure.__cause__ = error
            return failure
        except StateStoreError as error:
            return error
        return result

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something else in a transaction, in turn with others."""
        self._file.check_is_there()
        with self._turns.turn(), self._pool.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
            self._count(connection)
            return result

    # -- keeping the file in order

    def checkpoint_if_large(self) -> None:
        """When a store is opened: write back a log that others left behind."""
        if self._file.log_size() > WAL_IS_LARGE:
            with self._turns.turn(), self._pool.connection() as connection:
                self._checkpoint(connection)

    def _count(self, connection: sqlite3.Connection) -> None:
        self._commits += 1
        if self._commits >= COMMITS_BETWEEN_CHECKPOINTS:
            self._commits = 0
            self._tidy(connection)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        """Now and then, with the turn held: forget old changes, write the log back.

        What was committed before stays committed, so whatever fails here is nobody's failure, and is tried again.
        """
        try:
            (last,) = connection.execute(SQL["last_change"]).fetchone()
            connection.execute(SQL["forget_changes"], ((last or 0) - self._changes_kept,))
            self._checkpoint(connection)
        except (sqlite3.Error, OSError) as error:
            log.warning("%s could not be tidied up, and will be later: %s", self._file.path, error)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Write the log back into the file. We hold the turn: a log that is begun anew beside a writer is not safe
        before SQLite 3.51.3. Readers are waited for only when the log has become large.
        """
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        if self._file.log_size() > 2 * WAL_IS_LARGE:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
