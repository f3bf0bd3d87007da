"""An online copy: whole, of one moment, checked before it gets its name."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, suppress

from statestore.engines.flushing import flush, flush_directory
from statestore.engines.sqlite.connecting import BACKUP_ID
from statestore.engines.sqlite.statements import SQL
from statestore.errors import CorruptData, StoreUnavailable


def back_up(connection: sqlite3.Connection, to: str, *, timeout: float) -> None:
    """Copy the database to a path where nothing is yet; others may read and write meanwhile.

    Until it is finished, the copy has a name that no other one has. Whoever dies over it leaves that name behind.
    """
    if not to or "\0" in to:
        raise StoreUnavailable(f"a backup needs the path of a new file, not {to!r}")
    path = os.path.abspath(to)
    if os.path.lexists(path):
        raise StoreUnavailable(f"{path} exists already: a backup does not write over anything")
    unfinished = f"{path}-{os.urandom(6).hex()}.unfinished"
    try:
        os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileNotFoundError as error:
        raise StoreUnavailable(f"there is no directory {os.path.dirname(path)}: make it, and back up again") from error
    except OSError as error:
        raise StoreUnavailable(f"the backup to {path} could not be made: {error.strerror}") from error
    try:
        _copy(connection, unfinished, timeout)
        _publish(unfinished, path)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"the backup to {path} could not be made, and was removed: {error}") from error
    finally:
        for left in (unfinished, f"{unfinished}-journal"):  # SQLite keeps the latter if the disk is full
            with suppress(FileNotFoundError):
                os.unlink(left)


def _copy(connection: sqlite3.Connection, path: str, timeout: float) -> None:
    deadline = time.monotonic() + timeout

    def watch(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise StoreUnavailable(f"the database has been locked by another program for {timeout:g} s: try again")

    with closing(sqlite3.connect(path, isolation_level=None)) as copy:
        connection.backup(copy, progress=watch, sleep=0.05)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it
        copy.execute(f"PRAGMA application_id={BACKUP_ID}")
        copy.execute(SQL["set_identity"])  # what happens in it from now on is not what happens here
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise CorruptData(f"the copy is damaged, so the original may be ({verdict}): see check()")


def _publish(unfinished: str, path: str) -> None:
    """Give a finished file its name, unless somebody took it, and have both survive a power cut."""
    with open(unfinished, "rb") as file:
        flush(file.fileno())
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise StoreUnavailable(f"{path} was made by somebody else meanwhile: a backup does not write over it") from None
    flush_directory(os.path.dirname(path))
