"""Reading a file that nobody is writing, without a lock and without leaving a trace beside it.

SQLite takes such a file for one that never changes. So whatever was read counts only if the file is afterwards what it
was before, and a connection is used again only as long as that is so.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from statestore.engines.columns import SENSELESS
from statestore.engines.sqlite.connecting import DatabaseFile, FileState
from statestore.engines.sqlite.pool import ConnectionPool
from statestore.errors import StateStoreError

T = TypeVar("T")


class RestingFile:
    """A database file, as long as nobody writes it."""

    def __init__(self, file: DatabaseFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._state: FileState | None = None
        self._pool = self._new_pool()

    def read(self, work: Callable[[sqlite3.Connection], T]) -> tuple[T] | None:
        """What is found; ``None`` if somebody is writing, and it need not make sense."""
        before = self._file.state_at_rest()
        if before is None:
            return None
        try:
            with self._connections_to(before).connection() as connection:
                result = work(connection)
        except (sqlite3.Error, StateStoreError, *SENSELESS):
            if self._file.state_at_rest() == before:
                raise
            return None
        return (result,) if self._file.state_at_rest() == before else None

    def close(self) -> None:
        """Close all connections; nobody may be using one."""
        self._pool.close()

    def _connections_to(self, state: FileState) -> ConnectionPool:
        """Those that have seen the file in this state and in no other."""
        with self._lock:
            if state != self._state:
                self._pool.retire()
                self._pool, self._state = self._new_pool(), state
            return self._pool

    def _new_pool(self) -> ConnectionPool:
        return ConnectionPool(partial(self._file.connect, at_rest=True), lambda: None)  # none of them has a lock
