"""Connections to our own SQLite files: a fork waits until none is in use.

SQLite keeps in memory which locks a process has on a file. What a connection that is open at a fork has there comes
along into the child, where nobody ever takes it back: whoever opened the file in the child would wait for it for ever.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from typing import Any
from weakref import WeakSet

from statestore.engines.forking import PATIENCE

_lock = threading.RLock()
"""This is what is held, not the condition: Ctrl-C may come while that, which is written in Python, is let go."""
_changed = threading.Condition(_lock)
_is_forking = False


class OwnConnection(sqlite3.Connection):
    """A connection that a fork waits for until it is closed."""

    def close(self) -> None:
        super().close()
        with _lock:
            _in_use.discard(self)
            _changed.notify_all()


_in_use: WeakSet[OwnConnection] = WeakSet()


def connected(database: str, **options: Any) -> OwnConnection:
    """A connection to a file that is named by a URI; made after a fork that is under way."""
    with _lock:
        _changed.wait_for(lambda: not _is_forking)
        connection: OwnConnection = sqlite3.connect(database, uri=True, factory=OwnConnection, **options)
        _in_use.add(connection)
    return connection


def _wait_for_all() -> None:
    global _is_forking  # noqa: PLW0603 - one for the process, as a fork is
    with _lock:
        _is_forking = True
        _changed.wait_for(lambda: not _in_use, PATIENCE)


def _go_on_in_parent() -> None:
    global _is_forking  # noqa: PLW0603
    with _lock:
        _is_forking = False
        _changed.notify_all()


def _go_on_in_child() -> None:
    global _lock, _changed, _is_forking  # noqa: PLW0603
    _lock = threading.RLock()
    _changed, _is_forking = threading.Condition(_lock), False
    _in_use.clear()


os.register_at_fork(before=_wait_for_all, after_in_parent=_go_on_in_parent, after_in_child=_go_on_in_child)
