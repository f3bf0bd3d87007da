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
from statestore.engines.sqlite.gathering import Batch, Gathering, Result, Slot
from statestore.engines.sqlite.indexing import last_change
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.writing import Transaction
from statestore.errors import StateStoreError

T = TypeVar("T")
log = logging.getLogger("statestore")

PAGES_BETWEEN_CHECKPOINTS: Final = 1000
"""About how long the log becomes before it is written back: a file that is overwritten is flushed faster than one that
grows. Commits of many batches write many pages, so that there are also to be some commits in between.
"""
COMMITS_BETWEEN_CHECKPOINTS: Final = 100
LARGE: Final = 32 * 1024 * 1024
"""Bytes in the log from which on it is worth writing back."""
PAGE: Final = 4096
PAGES_OF_A_STEP: Final = 250
"""About how many pages a step of indexing writes."""
PATIENCE_WITH_READERS_MS: Final = 100


class Writer:
    """Makes batches of changes, durably."""

    def __init__(self, file: DatabaseFile, pool: ConnectionPool, turns: Turnstile, *, changes_kept: int) -> None:
        self._file = file
        self._pool = pool
        self._turns = turns
        self._changes_kept = changes_kept
        self._pages = self._commits = 0
        self._gathering = Gathering(self._make)

    def commit(self, batches: Sequence[Batch]) -> list[Result]:
        """Make some batches, each wholly or not at all; what became of each."""
        return self._gathering.commit(batches)

    def _make(self, slots: list[Slot]) -> None:
        try:
            self._pool.check_is_whole()
            with self._turns.mutex:
                try:
                    self._turns.take()
                    self._with_connection(slots)
                finally:
                    self._turns.hand_on()
        except (sqlite3.Error, OSError, StateStoreError) as error:
            failure = self._explained(error)
            for slot in slots:
                slot.result = failure

    def _with_connection(self, slots: list[Slot]) -> None:
        self._file.check_is_there()
        connection = self._pool.lend()
        is_sound = False
        try:
            self._make_together(connection, slots)
            self._tidy_if_due(connection)
            is_sound = True
        finally:
            self._pool.give_back(connection, is_sound=is_sound)

    def _make_together(self, connection: sqlite3.Connection, slots: list[Slot]) -> None:
        """Make all batches in one transaction; or, if that fails for any of them, each one alone."""
        try:
            self._in_transaction(connection, slots)
        except Exception as error:
            if len(slots) == 1 or is_lock_timeout(error):
                raise
            for slot in slots:
                try:
                    self._in_transaction(connection, [slot])
                except Exception as failure:  # noqa: BLE001 - carried to whoever sent this batch, whatever it is
                    slot.result = self._explained(failure)

    def _in_transaction(self, connection: sqlite3.Connection, slots: list[Slot]) -> None:
        """Make some batches in one transaction."""
        cursor = connection.cursor()
        cursor.execute("BEGIN IMMEDIATE")
        results: list[Result] | None = None
        try:
            transaction = Transaction(cursor)
            results = self._written(transaction, slots)
            cursor.execute("COMMIT")
            _settle(slots, results)
            self._pages += 2 + 3 * len(slots) + transaction.bytes // PAGE
        except BaseException as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            elif results is not None and not isinstance(error, sqlite3.Error):
                _settle(slots, results)  # interrupted just after the commit: it happened
            raise

    @staticmethod
    def _written(transaction: Transaction, slots: list[Slot]) -> list[Result]:
        """What becomes of each batch, once the transaction is committed."""
        if len(slots) > 1 or len(slots[0].batch) > 1:
            transaction.expect(slot.batch for slot in slots)
        results: list[Result] = []
        for slot in slots:
            try:
                results.append(transaction.make(slot.batch))
            except PreconditionFailed as failed:
                results.append(failed)
        transaction.flush()
        return results

    def _explained(self, error: Exception) -> Exception:
        if not isinstance(error, (sqlite3.Error, OSError)):
            return error
        failure = explanation(error, self._file.path, self._file.timeout)
        failure.__cause__ = error
        return failure

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something else in a transaction, in turn with others."""
        self._file.check_is_there()
        with self._turns.turn(), self._pool.connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = work(connection)
            connection.execute("COMMIT")
            self._pages += PAGES_OF_A_STEP
            self._tidy_if_due(connection)
            return result

    # -- keeping the file in order

    def tidy_up_after_others(self, connection: sqlite3.Connection) -> None:
        """When a store is opened, with the turn held: do what processes that did not live long enough left undone."""
        oldest, last = connection.execute(SQL["changes_kept"]).fetchone()
        has_old_changes = last is not None and last - oldest > self._changes_kept + PAGES_BETWEEN_CHECKPOINTS
        if has_old_changes or self._file.log_size() > LARGE:
            self._tidy(connection)

    def _tidy_if_due(self, connection: sqlite3.Connection) -> None:
        """When enough was written, tidy up."""
        self._commits += 1
        is_due = self._pages >= PAGES_BETWEEN_CHECKPOINTS and self._commits >= COMMITS_BETWEEN_CHECKPOINTS
        if is_due or self._pages * PAGE >= LARGE:
            self._pages = self._commits = 0
            self._tidy(connection)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        """With the turn held: forget old changes, write the log back.

        What was committed before stays committed, so whatever fails here is nobody's failure, and is tried again.
        """
        try:
            connection.execute(SQL["forget_changes"], (last_change(connection) - self._changes_kept,))
            self._checkpoint(connection)
        except (sqlite3.Error, OSError) as error:
            log.warning("%s could not be tidied up, and will be later: %s", self._file.path, error)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Write the log back into the file. We hold the turn: a log that is begun anew beside a writer is not safe
        before SQLite 3.51.3. A log that has become large is cut, if readers let go of it in a moment.
        """
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        if self._file.log_size() > 2 * LARGE:
            connection.execute(f"PRAGMA busy_timeout={PATIENCE_WITH_READERS_MS}")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute(f"PRAGMA busy_timeout={int(self._file.timeout * 1000)}")


def _settle(slots: list[Slot], results: list[Result]) -> None:
    for slot, result in zip(slots, results, strict=True):
        slot.result = result
