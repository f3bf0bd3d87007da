"""The one place of a store that writes: in turn with other processes, and in groups."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from statestore.engine import Batch, PreconditionFailed, Result
from statestore.engines.columns import SENSELESS
from statestore.engines.result_codes import is_lock_timeout
from statestore.engines.sqlite.connecting import DatabaseFile
from statestore.engines.sqlite.failures import explanation, is_of_storage, may_have_happened
from statestore.engines.sqlite.gathering import Gathering, Slot
from statestore.engines.sqlite.known import KnownHeaders, OutdatedHeader
from statestore.engines.sqlite.pool import TORN, ConnectionPool
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.upkeep import PAGE, Upkeep
from statestore.engines.sqlite.writing import Transaction
from statestore.errors import StateStoreError, StoreClosed

log = logging.getLogger("statestore")

T = TypeVar("T")

PAGES_OF_A_STEP: Final = 250
"""About how many pages a step of indexing writes."""


class Writer:
    """Makes batches of changes, durably."""

    def __init__(self, file: DatabaseFile, pool: ConnectionPool, turns: Turnstile, upkeep: Upkeep) -> None:
        self._file = file
        self._pool = pool
        self._turns = turns
        self._upkeep = upkeep
        self._known = KnownHeaders()
        self._gathering = Gathering()

    def commit(self, batches: Sequence[Batch]) -> list[Result]:
        """Make some batches, each wholly or not at all; what became of each."""
        return self._gathering.commit(batches, self._make)

    def _make(self, slots: list[Slot]) -> None:
        try:
            if self._pool.is_torn:
                raise StoreClosed(TORN)
            with self._turns.mutex:  # as in `Turnstile.turn`, whose context manager would cost microseconds a commit
                try:
                    self._turns.take()
                    self._with_connection(slots)
                    self._turns.hand_on()
                except BaseException:
                    self._turns.let_go()
                    raise
        except Exception as error:
            if not is_of_storage(error):
                raise
            failure = self._explained(error)
            undecided = [slot for slot in slots if slot.result is None]
            for slot in undecided:
                slot.result = failure
            if not undecided:
                log.warning("%s: all was written, and putting things back after it failed: %s", self._file.path, error)

    def _with_connection(self, slots: list[Slot]) -> None:
        self._file.check_is_there()
        connection = self._pool.lend()
        is_sound = False
        try:
            if self._turns.is_after_others and self._upkeep.note_others(connection):
                self._known.clear()
            error = self._try(connection, slots)
            if error is not None:
                self._make_otherwise(connection, slots, error)
            if self._upkeep.is_due:
                self._tidy(connection)
            is_sound = True
        finally:
            self._pool.give_back(connection, is_sound=is_sound)

    def _try(self, connection: sqlite3.Connection, slots: list[Slot]) -> Exception | None:
        """Make some batches in one transaction; why they could not be made."""
        try:
            self._in_transaction(connection, slots)
        except Exception as error:
            if not is_of_storage(error) or slots[-1].result is not None:
                raise
            return error
        return None

    def _make_otherwise(self, connection: sqlite3.Connection, slots: list[Slot], error: Exception) -> None:
        """When all in one transaction failed: try again if we relied on what is not so any more, or make each alone."""
        if isinstance(error, OutdatedHeader):  # somebody wrote without taking turns; by now nothing is known
            again = self._try(connection, slots)
            if again is None:
                return
            error = again
        if len(slots) == 1 or is_lock_timeout(error) or may_have_happened(error):
            raise error
        for slot in slots:
            self._known.clear()  # else one that relied on what another made would be told that it is outdated
            failure = self._try(connection, [slot])
            if failure is not None:
                slot.result = self._explained(failure)

    def _in_transaction(self, connection: sqlite3.Connection, slots: list[Slot]) -> None:
        """Make some batches in one transaction."""
        cursor = connection.cursor()
        transaction = Transaction(cursor, self._known)
        results: list[Result] | None = None
        try:
            cursor.execute("BEGIN IMMEDIATE")
            before = connection.total_changes
            results = _written(transaction, slots)
            cursor.execute("COMMIT")
            if connection.total_changes == before and not all(isinstance(result, Exception) for result in results):
                self._file.flush_what_is_there()  # what was asked for is there already, so nothing was written
            _settle(slots, results)
            self._known.forget_if_many()
            self._upkeep.note_commit(2 + 3 * len(slots) + transaction.bytes // PAGE, transaction.changes.length)
        except BaseException as error:
            self._known.clear()  # what is known may not have come to be
            cursor.close()  # whoever keeps the error keeps the cursor, whose statement may not be over
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            elif results is not None and not isinstance(error, sqlite3.Error):
                _settle(slots, results)  # interrupted just after the commit: it happened
            if results is None and transaction.relies_on_known and is_of_storage(error):
                raise OutdatedHeader("what was known of a session may not be so any more") from error
            raise

    def _explained(self, error: Exception) -> Exception:
        if isinstance(error, StateStoreError) or not isinstance(error, (sqlite3.Error, OSError, *SENSELESS)):
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
            self._upkeep.note_commit(PAGES_OF_A_STEP)
            if self._upkeep.is_due:
                self._tidy(connection)
            return result

    def _tidy(self, connection: sqlite3.Connection) -> None:
        self._upkeep.tidy(connection)
        self._known.clear()  # they are not busy any more, and may become so anew


def _written(transaction: Transaction, slots: list[Slot]) -> list[Result]:
    """What becomes of each batch, once the transaction is committed."""
    if len(slots) > 1 or len(slots[0].batch) > 1:
        transaction.expect([slot.batch for slot in slots])
    results: list[Result] = []
    for slot in slots:
        try:
            results.append(transaction.make(slot.batch))
        except PreconditionFailed as failed:
            results.append(failed)
    transaction.flush()
    return results


def _settle(slots: list[Slot], results: list[Result]) -> None:
    for slot, result in zip(slots, results, strict=True):
        slot.result = result
