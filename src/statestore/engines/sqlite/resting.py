"""Reading a file that nobody is writing, without a lock and without leaving a trace beside it.

SQLite takes such a file for one that never changes. So whatever was read counts only if the file is afterwards what it
was before, and a connection is used again only as long as that is so.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, TypeVar

from statestore.engines.columns import SENSELESS
from statestore.engines.sqlite.connecting import DatabaseFile, FileState
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.errors import StateStoreError

T = TypeVar("T")

ATTEMPTS: Final = 5
"""How often a file is read that changes meanwhile though nobody writes it: a new mode, or a link, is a change, too."""
SETTLED_NS: Final = 2_000_000_000
"""How old a state must be for connections to be kept: another program's write has its time when it begins."""


class _Kept(NamedTuple):
    """Connections that have seen the file in this state and in no other."""

    state: FileState
    pool: ConnectionPool


class RestingFile:
    """A database file, as long as nobody writes it."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._kept: _Kept | None = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
        """What is found; ``None`` if somebody is writing, and it need not make sense."""
        for _ in range(ATTEMPTS):
            before = self._file.state_at_rest()
            if before is None:
                return None
            try:
                with self._connections_to(before).connection() as connection:
                    result = work(connection)
            except (sqlite3.Error, StateStoreError, *SENSELESS):
                if self._file.state_at_rest() == before:
                    raise
                continue
            if self._file.state_at_rest() == before:
                return (result,)
        return None

    def close(self) -> None:
        """Close all connections; nobody may be using one."""
        if self._kept is not None:
            self._kept.pool.close()

    def _connections_to(self, state: FileState) -> ConnectionPool:
        """Connections to the file in this state; what is not kept goes when it is given back."""
        kept = self._kept
        if kept is not None and kept.state == state:
            return kept.pool
        pool = ConnectionPool(partial(self._file.connect, at_rest=True), lambda: None)  # none of them has a lock
        if time.time_ns() - state.changed_ns > SETTLED_NS:
            self._kept = _Kept(state, pool)
            if kept is not None:
                kept.pool.retire()
        return pool
