"""The floor: the standard library's sqlite3 and the fewest statements that do the work."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

from benchmarks.peers.peer import pragmas

_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE sessions (id TEXT PRIMARY KEY, updated INTEGER NOT NULL, length INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX sessions_by_update ON sessions (updated);
CREATE TABLE records (session TEXT, seq INTEGER, kind TEXT, content TEXT, PRIMARY KEY (session, seq)) WITHOUT ROWID;
"""
_HEADER = """
INSERT INTO sessions VALUES (?, ?, 2) ON CONFLICT DO UPDATE SET updated = excluded.updated, length = length + 2
RETURNING length
"""


class Bare:
    """Two rows and a header row in one transaction."""

    name = "bare sqlite3 (floor)"
    package = ""
    used = "One connection behind a lock. One transaction for an exchange: two rows in, the session's header updated."

    def open(self, directory: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(directory / "bare.db", isolation_level=None, check_same_thread=False)
        self._connection.executescript(_SCHEMA)

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        with self._lock:
            execute = self._connection.execute
            execute("BEGIN IMMEDIATE")
            (length,) = execute(_HEADER, (session, time.time_ns())).fetchone()
            execute("INSERT INTO records VALUES (?, ?, 'user', ?)", (session, length - 1, user_text))
            execute("INSERT INTO records VALUES (?, ?, 'agent', ?)", (session, length, agent_text))
            execute("COMMIT")

    def load(self, session: str) -> int:
        statement = "SELECT seq, kind, content FROM records WHERE session = ? ORDER BY seq"
        with self._lock:
            return len(self._connection.execute(statement, (session,)).fetchall())

    def list_newest(self, count: int) -> int:
        statement = "SELECT id, updated, length FROM sessions ORDER BY updated DESC LIMIT ?"
        with self._lock:
            return len(self._connection.execute(statement, (count,)).fetchall())

    def durability(self) -> str:
        return pragmas(lambda statement: self._connection.execute(statement).fetchone())

    def close(self) -> None:
        self._connection.close()
