"""Giving back the room that is free since something was deleted: SQLite keeps it in the file for what comes later.

Nothing of what was said in deleted sessions is left afterwards. Without this, some of it is: words in the index of
words until its parts are merged, pieces of records in the gaps of pages, and everything in the log until that is
written over.

The turn is held all the time. While nobody writes, whoever begins to read leaves the log alone, so that it can be cut
as soon as those are done who read from it before.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Final

from statestore.engines.result_codes import code_of
from statestore.engines.sqlite.connecting import DatabaseFile
from statestore.engines.sqlite.indexing import tidy_index
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.upkeep import Upkeep
from statestore.errors import StoreUnavailable

PATIENCE_MS: Final = 5000
"""How long to wait for those who read from the log."""


def compact(file: DatabaseFile, turns: Turnstile, pool: ConnectionPool, upkeep: Upkeep) -> int:
    """Write the file anew, and cut its log; how many bytes smaller they are."""
    with turns.turn(), pool.connection() as connection:
        before = file.size()
        if not upkeep.cut_log(connection, PATIENCE_MS):
            raise _log_in_use(file, "nothing was compacted")
        try:
            tidy_index(connection)
            connection.execute("VACUUM")
        except BaseException as error:
            with suppress(sqlite3.Error):
                upkeep.cut_log(connection)  # it may be long, and full of what did not happen
            if code_of(error) == sqlite3.SQLITE_FULL:
                raise StoreUnavailable(
                    f"{file.path}: no room for a second copy beside it, or in the directory for temporary files "
                    "(SQLITE_TMPDIR): everything is as it was, make room and try again"
                ) from error
            raise
        if not upkeep.cut_log(connection, PATIENCE_MS):
            raise _log_in_use(file, "what was deleted is still in there")
        return max(before - file.size(), 0)


def _log_in_use(file: DatabaseFile, consequence: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{file.path}: somebody has been reading from its log for {PATIENCE_MS / 1000:g} s, and {consequence}: "
        "compact again when they are done"
    )
