"""The floor: the same rows and the same header update, one transaction an exchange, as few statements as it takes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from statestore import AgentResponse, UserMessage
from statestore.records import body_of

MESSAGE = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
USER_BODY = body_of(UserMessage(MESSAGE)).decode()
AGENT_BODY = body_of(AgentResponse(MESSAGE)).decode()

SCHEMA = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, user_id TEXT, version TEXT, created TEXT, updated TEXT,
    next_seq INTEGER, users INTEGER, agents INTEGER, events INTEGER, size INTEGER, title TEXT
) STRICT;
CREATE TABLE records (place INTEGER PRIMARY KEY, kind INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
"""
UPDATE = (
    "UPDATE sessions SET version = ?, updated = ?, next_seq = next_seq + 2, users = users + 1, agents = agents + 1, "
    "size = size + ? WHERE number = ?"
)


class Bare:
    """Plain ``sqlite3``, with the pragmas of the engine."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=FULL")
        self.connection.executescript(SCHEMA)
        self._seq: dict[int, int] = {}

    def create(self, number: int, exchanges: int = 0) -> None:
        """A session of this many exchanges."""
        row = (number, f"session-{number}", "user", "0" * 16, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", 1)
        self.connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, NULL)", row)
        places = range(number << 32 | 1, (number << 32 | 1) + 2 * exchanges)
        rows = ((place, 1 - place % 2, AGENT_BODY if place % 2 == 0 else USER_BODY) for place in places)
        self.connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        self._seq[number] = 1 + 2 * exchanges

    def append(self, number: int) -> None:
        """One exchange, durably."""
        execute = self.connection.execute
        seq = self._seq[number]
        self._seq[number] = seq + 2
        rows = [(number << 32 | seq, 0, USER_BODY), (number << 32 | seq + 1, 1, AGENT_BODY)]
        execute("BEGIN IMMEDIATE")
        self.connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        execute(UPDATE, (f"{seq:016}", "2026-01-01T00:00:00.000001Z", 400, number))
        execute("COMMIT")
