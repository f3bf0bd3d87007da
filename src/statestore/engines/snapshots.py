"""Reading SQLite: several statements that see one state of a database."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Several statements that see one state of the database; inside of another snapshot, the state of that one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")  # of what was only read; in a damaged file, SQLite refuses a COMMIT
