"""Keeping the file in order: the log is written back before it is long, and old changes are forgotten.

A log that is begun anew is overwritten, and that is flushed faster than a log that grows. So it is written back now
and then, whoever wrote it: a process counts what the others wrote, too, and notes beside the turn when it was done.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Final

from statestore.engines.sqlite.connecting import DatabaseFile
from statestore.engines.sqlite.failures import is_of_storage
from statestore.engines.sqlite.indexing import last_change
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.turns import Turnstile

log = logging.getLogger("statestore")

PAGES_BETWEEN_CHECKPOINTS: Final = 1000
"""About how long the log becomes before it is written back. Commits of many batches write many pages, so that there are
also to be some commits in between.
"""
COMMITS_BETWEEN_CHECKPOINTS: Final = 100
PAGES_OF_A_CHANGE: Final = 5
"""About how many pages somebody else's commit writes."""
LARGE: Final = 32 * 1024 * 1024
"""Bytes in the log from which on it is worth writing back."""
PAGE: Final = 4096
PATIENCE_WITH_READERS_MS: Final = 100


class Upkeep:
    """Knows how much was written since the log was written back. All is done with the turn held."""

    def __init__(self, file: DatabaseFile, turns: Turnstile, *, changes_kept: int) -> None:
        self._file = file
        self._turns = turns
        self._changes_kept = changes_kept
        self._pages = self._commits = 0
        self._last_change: int | None = None
        self._round = 0
        self.is_due = False
        """Whether enough was written to tidy up."""

    def note_commit(self, pages: int, changes: int = 0) -> None:
        """Count what we wrote."""
        self._pages += pages
        self._commits += 1
        if self._last_change is not None:
            self._last_change += changes
        has_many = self._pages >= PAGES_BETWEEN_CHECKPOINTS and self._commits >= COMMITS_BETWEEN_CHECKPOINTS
        self.is_due = has_many or self._pages * PAGE >= LARGE

    def note_others(self, connection: sqlite3.Connection) -> bool:
        """Count what others wrote since our last turn, or since the log was written back by one of them; whether
        anybody may have written.
        """
        last, known = last_change(connection), self._last_change
        self._last_change = last
        if (rounds := self._turns.rounds()) != self._round:
            self._round = rounds
            self._pages = self._commits = 0
        if known is not None and last > known:
            self._commits += last - known
            self._pages += PAGES_OF_A_CHANGE * (last - known)
        return last != known

    def tidy_after_others(self, connection: sqlite3.Connection) -> None:
        """When a store is opened: do what processes that did not live long enough left undone."""
        oldest, last = connection.execute(SQL["changes_kept"]).fetchone()
        has_old_changes = last is not None and last - oldest > self._changes_kept + PAGES_BETWEEN_CHECKPOINTS
        if has_old_changes or self._file.log_size() > LARGE:
            self.tidy(connection)

    def tidy(self, connection: sqlite3.Connection) -> None:
        """Forget old changes, call no session busy any more, write the log back.

        What was committed before stays committed, so whatever fails here is nobody's failure, and is tried again.
        """
        self._pages = self._commits = 0
        self.is_due = False
        try:
            self._round = self._turns.begin_round()
            with connection:  # one transaction, rolled back if it fails
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(SQL["set_idle"])
                connection.execute(SQL["forget_changes"], (last_change(connection) - self._changes_kept,))
            self._checkpoint(connection)
        except (sqlite3.Error, OSError) as error:
            if not is_of_storage(error):
                raise
            log.warning("%s could not be tidied up, and will be later: %s", self._file.path, error)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Write the log back into the file. We hold the turn: a log that is begun anew beside a writer is not safe
        before SQLite 3.51.3. A log that has become large is cut, if readers let go of it in a moment.
        """
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        if self._file.log_size() > 2 * LARGE:
            self.cut_log(connection)

    def cut_log(self, connection: sqlite3.Connection, patience_ms: int = PATIENCE_WITH_READERS_MS) -> bool:
        """Write the log back and cut it, if readers let go of it in time; whether they did."""
        connection.execute(f"PRAGMA busy_timeout={patience_ms}")
        try:
            is_in_use, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.execute(f"PRAGMA busy_timeout={int(self._file.timeout * 1000)}")
        return not is_in_use
