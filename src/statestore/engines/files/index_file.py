"""The index of session files on disk: an SQLite file that may be deleted at any time, and is rebuilt if need be."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from typing import Final

import msgspec

from statestore.engines.files.identity import Identity
from statestore.engines.files.own_database import OwnDatabase
from statestore.engines.files.seen import Entry
from statestore.engines.result_codes import is_lock_timeout
from statestore.jsontext import is_unicode
from statestore.stored import SessionSummary

log = logging.getLogger("statestore")

FORMAT: Final = 1
_FEW: Final = 500
_SCHEMA: Final = "CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, entry TEXT NOT NULL, summary TEXT)"

_encode = msgspec.json.Encoder().encode
_decode_entries = msgspec.json.Decoder(list[Entry]).decode
_decode_summaries = msgspec.json.Decoder(list[SessionSummary]).decode


class IndexFile:
    """The index on disk, for the next process. Who only reads uses what others left, while nobody is writing it."""

    def __init__(self, database: OwnDatabase, *, is_writable: bool = True) -> None:
        self._database = database
        self._path = database.path
        self._is_writable = is_writable
        self._is_given_up = False

    def load(self) -> dict[str, Entry]:
        """All entries; none if there is no file, or a damaged one."""
        if not self._is_there():
            return {}
        try:
            with self._connected() as connection:
                (joined,) = connection.execute("SELECT CAST(group_concat(entry) AS BLOB) FROM files").fetchone()
            return {entry.id: entry for entry in _decode_entries(b"[" + (joined or b"") + b"]")}
        except (sqlite3.DatabaseError, msgspec.DecodeError, UnicodeDecodeError) as error:
            if not is_lock_timeout(error):
                self.discard(error)
            return {}

    def summaries(self, session_ids: Sequence[str]) -> list[SessionSummary]:
        """The summaries of some sessions, and maybe of more; those that are not there are left out."""
        query = "SELECT CAST(group_concat(summary) AS BLOB) FROM files"
        with self._connected() as connection:
            if len(session_ids) <= _FEW:
                marks = ",".join("?" * len(session_ids))
                row = connection.execute(f"{query} WHERE id IN ({marks})", session_ids).fetchone()
            else:
                row = connection.execute(query).fetchone()
        return _decode_summaries(b"[" + (row[0] or b"") + b"]")

    def save(self, changed: Sequence[tuple[Entry, SessionSummary | None]], gone: Iterable[str]) -> None:
        """Keep what changed. It is only a cache: what cannot be kept is read again next time."""
        if not self._is_writable or self._database.is_blocked():
            return
        rows = [
            (entry.id, _encode(entry).decode(), _encode(summary).decode() if summary else None)
            for entry, summary in changed
            if is_unicode(entry.id)
        ]
        lost = [(session_id,) for session_id in gone if is_unicode(session_id)]
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("DELETE FROM files WHERE id = ?", lost)
                connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)
        except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:
            log.debug("the index %s could not be updated: %s", self._path, error)
            if not isinstance(error, (sqlite3.OperationalError, OSError)):
                self.discard(error)

    def _is_there(self) -> bool:
        """Whether there is an index file that can be used."""
        return not self._is_given_up and self._database.is_there() and not self._database.is_blocked()

    @contextmanager
    def _connected(self) -> Generator[sqlite3.Connection]:
        """A connection to read from."""
        if self._is_writable:
            with closing(self._connect()) as connection:
                yield connection
            return
        before = self._state_at_rest()
        with closing(self._database.connect("mode=ro&immutable=1")) as connection:  # leaves no trace, and sees no log
            if connection.execute("PRAGMA user_version").fetchone() != (FORMAT,):
                raise sqlite3.DatabaseError("it is of another release")
            yield connection
        if before is None or before != self._state_at_rest():
            raise sqlite3.DatabaseError("somebody is writing it")

    def _state_at_rest(self) -> Identity | None:
        """What tells one state of the file from another; ``None`` while somebody writes or removes it."""
        if os.path.exists(f"{self._path}-wal"):
            return None
        try:
            return Identity.of(os.stat(self._path))
        except FileNotFoundError:
            return None

    def _connect(self) -> sqlite3.Connection:
        connection = self._database.connect(timeout=1)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("DROP TABLE IF EXISTS files")
                connection.execute(_SCHEMA)
                connection.execute(f"PRAGMA user_version={FORMAT}")
            connection.execute("PRAGMA synchronous=NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def discard(self, reason: Exception) -> None:
        """Remove an index that makes no sense; who only reads goes without it."""
        if not self._is_writable:
            self._is_given_up = True
            return
        log.warning("the index %s cannot be used and will be rebuilt: %s", self._path, reason)
        self._database.remove()
