"""The connections of one store: one to write with, a few to read with, none of them older than the process.

SQLite's connections must not cross a fork, not even to be closed: what they know of locks would be wrong in the
child, and the locks themselves stay with the parent. So before a fork all are closed, and opened again when needed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final
from weakref import WeakSet

from statestore.errors import StoreClosed

IDLE_READERS: Final = 8
FORK_PATIENCE: Final = 10.0
"""Seconds that a fork waits for calls under way in other threads."""


class ConnectionPool:
    """Lends out connections, and takes them back."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._changed = threading.Condition()
        self._readers: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._lent = 0
        self._is_held_up = False
        self._is_torn = False
        _pools.add(self)

    @contextmanager
    def reader(self) -> Generator[sqlite3.Connection]:
        """A connection to read with, which nobody else uses meanwhile."""
        self._lend()
        connection = None
        try:
            with self._changed:
                connection = self._readers.pop() if self._readers else None
            if connection is None:
                connection = self._connect()
            yield connection
        except sqlite3.Error:
            if connection is not None:
                connection.close()  # whatever it stumbled over, the next one begins afresh
                connection = None
            raise
        finally:
            self._take_back(connection)

    @contextmanager
    def writer(self) -> Generator[sqlite3.Connection]:
        """The connection to write with. Who asks for it has the store's turn, so it is free."""
        self._lend()
        try:
            if self._writer is None:
                self._writer = self._connect()
            yield self._writer
        except sqlite3.Error:
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            raise
        finally:
            with self._changed:
                self._lent -= 1
                self._changed.notify_all()

    def _lend(self) -> None:
        with self._changed:
            while self._is_held_up:
                self._changed.wait()
            if self._is_torn:
                raise StoreClosed(
                    "this process was forked while the store was busy: open the store in the child itself"
                )
            self._lent += 1

    def _take_back(self, connection: sqlite3.Connection | None) -> None:
        with self._changed:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
            if connection is not None and len(self._readers) < IDLE_READERS:
                self._readers.append(connection)
                connection = None
            self._lent -= 1
            self._changed.notify_all()
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close all connections; nobody may be using one."""
        readers, self._readers = self._readers, []
        for connection in readers:
            connection.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def before_fork(self) -> None:
        """Close everything, once the calls under way are done."""
        deadline = time.monotonic() + FORK_PATIENCE
        with self._changed:
            self._is_held_up = True
            while self._lent and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            if not self._lent:
                self.close()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        with self._changed:
            self._is_held_up = False
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Go on with new locks; or never, if a connection of the parent's came along."""
        self._changed = threading.Condition()
        self._is_held_up = False
        self._is_torn = self._lent > 0
        _inherited.extend(connection for connection in (self._writer, *self._readers) if connection is not None)
        self._writer, self._readers, self._lent = None, [], 0


_pools: WeakSet[ConnectionPool] = WeakSet()
_inherited: list[sqlite3.Connection] = []
"""Connections that came along from the parent: kept for ever, because closing them is not safe."""
_forking: list[ConnectionPool] = []


def _before_fork() -> None:
    _forking[:] = list(_pools)
    for pool in _forking:
        pool.before_fork()


def _after_fork_in_parent() -> None:
    for pool in _forking:
        pool.after_fork_in_parent()
    _forking.clear()


def _after_fork_in_child() -> None:
    for pool in _forking:
        pool.after_fork_in_child()
    _forking.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
