"""What SQLite says went wrong, by its codes: its words are for people, and may change."""

from __future__ import annotations

import sqlite3


def code_of(error: BaseException) -> int:
    """SQLite's code for what went wrong, without its finer distinctions; 0 if it was not SQLite."""
    return fine_code_of(error) & 0xFF


def fine_code_of(error: BaseException | None) -> int:
    """The same with its finer distinctions."""
    return getattr(error, "sqlite_errorcode", 0)


def is_lock_timeout(error: BaseException) -> bool:
    """Whether somebody else held the lock for too long."""
    return code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
