"""Our own SQLite files, which are caches in ``.statestore``: used only if they are what and where they should be.

SQLite opens files by their path, and follows links. So a new file is made here; a link, or a file that has another
name elsewhere, is left alone; and what SQLite opened is compared with what lies in our directory before anything is
read or written. What remains is the instant between that look and the moment when SQLite opens the log beside it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import stat
import threading
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote

from statestore.engines.files.connections import connected
from statestore.engines.files.directory import OWN, Directory
from statestore.engines.files.identity import status_of
from statestore.engines.forking import hold_while_forking

log = logging.getLogger("statestore")

_SUFFIXES: Final = ("", "-wal", "-shm")
_making = threading.Lock()
"""Held while a file is made: closing it would drop the locks that another thread has on it by then."""
hold_while_forking(_making)


class OwnDatabase:
    """One file in ``.statestore`` that SQLite keeps, and those that it has beside it."""

    def __init__(self, directory: Directory, name: str) -> None:
        self._directory = directory
        self._name = name
        self.path = os.path.join(directory.path, OWN, name)

    def is_there(self) -> bool:
        """Whether there is such a file, or anything else in its place."""
        return self._directory.own >= 0 and self._status("") is not None

    def is_blocked(self) -> bool:
        """Whether a link, a directory or the like is in its place, or in that of our directory; it is not touched."""
        if self._leads_here() and all(map(self._is_plain, _SUFFIXES)):
            return False
        log.warning("%s is not a file of its own, so it is not used: remove it", self.path)
        return True

    def connect(self, mode: str = "mode=rw", **options: Any) -> sqlite3.Connection:
        """A connection to the file, which is made if it is to be written and there is none."""
        if mode == "mode=rw":
            self._make()
        connection = connected(f"file:{quote(os.fsencode(self.path))}?{mode}", **options)
        try:
            if self.is_blocked() or not self._is_opened_by(connection):
                error = sqlite3.OperationalError(f"{self.path} leads elsewhere")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
        except BaseException:
            connection.close()
            raise
        return connection

    def remove(self) -> None:
        """Delete the file, and those beside it, if they are files."""
        for suffix in _SUFFIXES:
            if self._is_plain(suffix):
                with suppress(FileNotFoundError):
                    os.unlink(self._name + suffix, dir_fd=self._directory.own)

    def _make(self) -> None:
        """Make an empty file, if there is none."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with _making:
            if self._status("") is None:
                with suppress(FileExistsError):
                    os.close(os.open(self._name, flags, 0o644, dir_fd=self._directory.own))

    def _is_opened_by(self, connection: sqlite3.Connection) -> bool:
        connection.text_factory = bytes
        opened = connection.execute("PRAGMA database_list").fetchone()[2]
        connection.text_factory = str
        status = self._status("")
        try:
            return status is not None and os.path.samestat(os.stat(opened, follow_symlinks=False), status)
        except FileNotFoundError:
            return False

    def _leads_here(self) -> bool:
        """Whether SQLite, which goes by the path, comes to the directory that we have open."""
        try:
            found = os.stat(os.path.dirname(self.path), follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._directory.own))

    def _is_plain(self, suffix: str) -> bool:
        status = self._status(suffix)
        return status is None or (stat.S_ISREG(status.st_mode) and status.st_nlink <= 1)

    def _status(self, suffix: str) -> os.stat_result | None:
        return status_of(self._directory.own, self._name + suffix)
