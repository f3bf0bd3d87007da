"""The connections of one store: as many as are in use at once, none of them older than the process.

SQLite's connections must not cross a fork, not even to be closed: what they know of locks would be wrong in the
child, and the locks themselves stay with the parent. So before a fork all are closed, and opened again when needed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Final
from weakref import WeakSet

from statestore.engines.forking import PATIENCE
from statestore.errors import StateStoreError, StoreClosed

MOST_IDLE: Final = 8

Identity = tuple[int, int]
"""Device and inode of a file."""

TORN: Final = (
    "this process was forked while a thread was busy in the store, so it cannot use this file: "
    "fork when the store is idle, or start processes with spawn"
)
torn_files: set[Identity] = set()
"""Files of which a connection in use came along from the parent: SQLite would take its locks for ours."""


class ConnectionPool:
    """Lends out connections, and takes them back."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], identity: Callable[[], Identity | None]) -> None:
        self._connect = connect
        self._identity = identity
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle: list[sqlite3.Connection] = []
        self._borrowers: set[int] = set()
        self._most_idle = MOST_IDLE
        self._is_held_up = False
        self.is_torn = False
        """Whether this process was forked while a connection was in use."""
        with _forking:
            _pools.add(self)

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection]:
        """A connection that nobody else uses meanwhile. What is interrupted may leave it with another setting."""
        connection = self.lend()
        is_sound = True
        try:
            yield connection
        except StateStoreError:
            raise  # ours, raised where nothing was under way
        except BaseException:
            is_sound = False
            raise
        finally:
            self.give_back(connection, is_sound=is_sound)

    def lend(self) -> sqlite3.Connection:
        """A connection, until it is given back."""
        with self._lock:
            while self._is_held_up:
                self._changed.wait()
            if self.is_torn:
                raise StoreClosed(TORN)
            self._borrowers.add(get_ident())  # a thread uses one at a time
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:
            self._note_return()
            raise

    def give_back(self, connection: sqlite3.Connection, *, is_sound: bool = True) -> None:
        """Take a connection back; one that failed, or is in the middle of something, is not used again."""
        if is_sound and not connection.in_transaction:
            with self._lock:
                if len(self._idle) < self._most_idle:
                    self._idle.append(connection)
                    self._borrowers.discard(get_ident())
                    if self._is_held_up:
                        self._changed.notify_all()
                    return
        self._discard(connection)

    def _discard(self, connection: sqlite3.Connection) -> None:
        with suppress(sqlite3.Error):  # whoever keeps a statement keeps the connection open, and what it locks
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        connection.close()
        self._note_return()

    def _note_return(self) -> None:
        with self._lock:
            self._borrowers.discard(get_ident())
            self._changed.notify_all()

    def close(self) -> None:
        """Close all connections; nobody may be using one."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()  # for a store that nobody closed

    def retire(self) -> None:
        """Close all connections, those in use when they are given back."""
        with self._lock:
            while self._is_held_up:
                self._changed.wait()
            self._most_idle = 0
            self._borrowers.add(get_ident())  # a fork waits for what is being closed, too
        try:
            self.close()
        finally:
            self._note_return()

    def before_fork(self) -> None:
        """Close everything, once the calls under way are done."""
        deadline = time.monotonic() + PATIENCE
        with self._lock:
            self._is_held_up = True
            self._borrowers.discard(get_ident())  # who forks uses none
            while self._borrowers and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())
            if not self._borrowers:
                self.close()

    def after_fork_in_parent(self) -> None:
        """Go on."""
        with self._lock:
            self._is_held_up = False
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Go on with new locks; or never, if a connection of the parent's came along."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._is_held_up = False
        identity = self._identity()
        if self._borrowers and identity is not None:
            self.is_torn = True
            torn_files.add(identity)
        _inherited.extend(self._idle)
        self._idle, self._borrowers = [], set()


_pools: WeakSet[ConnectionPool] = WeakSet()
_inherited: list[sqlite3.Connection] = []
"""Connections that came along from the parent: kept for ever, because closing them is not safe."""
_forking = threading.RLock()
"""Held from before a fork until after it, and while a pool is made, so that none is missed."""


def _before_fork() -> None:
    _forking.acquire()
    for pool in list(_pools):
        pool.before_fork()


def _after_fork_in_parent() -> None:
    for pool in list(_pools):
        pool.after_fork_in_parent()
    _forking.release()


def _after_fork_in_child() -> None:
    global _forking  # noqa: PLW0603 - the parent's is held by a thread that is not here
    for pool in list(_pools):
        pool.after_fork_in_child()
    _forking = threading.RLock()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
