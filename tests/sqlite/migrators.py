"""What processes do that bring one database to a schema at the same time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from statestore.engines.sqlite import migrating


def run_migration(path: str, steps: list[str]) -> Any:
    """Bring a database to a schema, as opening a store does."""
    migrating.MIGRATIONS = steps
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        migrating.migrate(connection, path, steps=steps)
        return connection.execute("PRAGMA user_version").fetchone()[0]
