"""Giving back the room that is free since something was deleted: SQLite keeps it in the file for what comes later.

Nothing of what was said in deleted sessions is left afterwards. Without this, some of it is: words in the index of
words until its parts are merged, pieces of records in the gaps of pages, and everything in the log until that is
written over.
"""

from __future__ import annotations

from typing import Final

from statestore.engines.sqlite.connecting import DatabaseFile
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.engines.sqlite.turns import Turnstile
from statestore.engines.sqlite.upkeep import Upkeep
from statestore.errors import StoreUnavailable

ATTEMPTS: Final = 20
"""How often to ask readers to let go of the log, a tenth of a second each. Writers have their turn in between."""


def compact(file: DatabaseFile, turns: Turnstile, pool: ConnectionPool, upkeep: Upkeep) -> int:
    """Write the file anew, and cut its log; how many bytes smaller they are."""
    before = file.size()
    with turns.turn(), pool.connection() as connection:
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        connection.execute("VACUUM")
    for _ in range(ATTEMPTS):
        with turns.turn(), pool.connection() as connection:
            if upkeep.cut_log(connection):
                return max(before - file.size(), 0)
    raise StoreUnavailable(
        f"{file.path} was compacted, but somebody has been reading from its log all the time, and what was deleted is "
        "still in there: compact again when they are done"
    )
