"""Where the change log lies: an SQLite file for all processes, or memory where nothing may be written.

The file is only ever a cache: who deletes it loses the cursors of watchers, and the time to index all words again.
Each use opens it anew, so that a file that was deleted, replaced or damaged meanwhile is noticed.
"""

from __future__ import annotations

import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from statestore.engines.files.own_database import OwnDatabase
from statestore.engines.forking import forget_after_fork
from statestore.engines.fulltext import CREATE_WORDS
from statestore.engines.result_codes import code_of
from statestore.errors import StoreUnavailable

log = logging.getLogger("statestore")
T = TypeVar("T")

FORMAT: Final = 1
TIMEOUT: Final = 30.0
NAP: Final = 0.001
_TRIES: Final = 4

_SCHEMA: Final = (
    """CREATE TABLE log (
        identity TEXT    NOT NULL, -- of this file: a cursor of another one means nothing here
        rules    INTEGER NOT NULL  -- by which text was cut into words; 0 if nobody ever searched
    ) STRICT""",
    """CREATE TABLE sessions (
        number        INTEGER PRIMARY KEY AUTOINCREMENT, -- never given out twice
        id            TEXT    NOT NULL UNIQUE,
        entry         TEXT    NOT NULL, -- the file as it was seen, as JSON
        version       TEXT    NOT NULL, -- empty if the file cannot be read any more
        user_id       TEXT    NOT NULL,
        created       TEXT    NOT NULL,
        project       TEXT,
        title         TEXT,             -- as listings show it
        given_title   TEXT,             -- as the metadata have it, which is searched
        header        INTEGER NOT NULL, -- a checksum of fields and metadata
        indexed_seq   INTEGER NOT NULL DEFAULT 0, -- there are words of records up to this one
        kept_seq      INTEGER NOT NULL DEFAULT 0, -- up to this one they are the right ones
        indexed_title TEXT,
        is_indexed    INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    "CREATE INDEX sessions_to_index ON sessions (number) WHERE NOT is_indexed",
    "CREATE TABLE marks (number INTEGER PRIMARY KEY, marks BLOB NOT NULL) STRICT",  # a checksum a record, in order
    "CREATE TABLE leftovers (number INTEGER PRIMARY KEY) STRICT",  # sessions that are gone, whose words are not
    """CREATE TABLE changes (
        change     INTEGER PRIMARY KEY AUTOINCREMENT,
        number     INTEGER NOT NULL,
        first      INTEGER, -- the records that were added
        last       INTEGER,
        rewound_to INTEGER, -- the last record that was left when later ones were removed or rewritten
        is_header  INTEGER, -- 1 if the session was created, or a field or its metadata changed
        gone_id    TEXT,    -- of a session that was deleted
        gone_user  TEXT
    ) STRICT""",
    "CREATE INDEX rewinds ON changes (number, change) WHERE rewound_to IS NOT NULL",
    CREATE_WORDS,
)

_NOT_ITS_FAULT: Final = frozenset(
    (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
    )
)


class LogDamaged(Exception):
    """What is in the log makes no sense."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All of a block's writes or none; nobody else writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


class LogFile:
    """The log's tables, for as many uses as there are; made anew where they are missing or damaged."""

    def __init__(self, database: OwnDatabase | None) -> None:
        self._database = database
        self._place = database.path if database is not None else "the change log in memory"
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """Drop what is in memory."""
        self._memory: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Let go of what is in memory."""
        with self._lock:
            memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()

    def __del__(self) -> None:
        self.close()  # for a store that nobody closed

    def is_there(self) -> bool:
        """Whether there is a file: whether anybody ever searched or watched."""
        return self._database is not None and self._database.is_there()

    def use(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """What an act with a connection gives back; it is done again with another log if this one is damaged."""
        for turn in range(_TRIES):
            try:
                return self._acted(act)
            except (sqlite3.DatabaseError, UnicodeDecodeError, LogDamaged) as error:
                if isinstance(error, sqlite3.ProgrammingError):
                    raise
                if turn == _TRIES - 1 or not (_is_damage(error) or _was_moved(error)):
                    raise StoreUnavailable(f"{self._place}: {error}") from error
                if _is_damage(error):
                    self._discard(error)
        raise AssertionError("the last turn returns or raises")

    def _acted(self, act: Callable[[sqlite3.Connection], T]) -> T:
        if self._database is None or self._database.is_blocked():
            with self._lock:  # here, not in a generator: Ctrl-C may come before that goes on, and lets go
                if self._memory is None:
                    self._memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                    _create(self._memory)
                return act(self._memory)
        connection = self._database.connect(timeout=TIMEOUT, isolation_level=None)
        try:
            _prepare(connection)
            return act(connection)
        finally:
            connection.close()

    def _discard(self, reason: Exception) -> None:
        """Remove a log that makes no sense."""
        log.warning("%s cannot be used and will be rebuilt: %s", self._place, reason)
        self.close()
        if self._database is not None and not self._database.is_blocked():
            self._database.remove()


def _is_damage(error: Exception) -> bool:
    return code_of(error) not in _NOT_ITS_FAULT


def _was_moved(error: Exception) -> bool:
    """Whether the cause may be that somebody deleted the file, or one of those beside it, while it was open."""
    return code_of(error) in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)


def _prepare(connection: sqlite3.Connection) -> None:
    """Settle how a file is used, and create what belongs into a new one."""
    connection.execute("PRAGMA synchronous=FULL")  # a cursor that was told must mean the same after a power cut
    connection.execute("PRAGMA cell_size_check=ON")
    deadline = time.monotonic() + TIMEOUT
    while _format_of(connection) == 0:
        try:
            _furnish(connection)
        except sqlite3.OperationalError as error:
            if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(NAP)  # somebody else is about it, and SQLite itself does not wait for that
    if (found := _format_of(connection)) != FORMAT:
        raise LogDamaged(f"it has the format {found}, and this statestore knows {FORMAT}")


def _furnish(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    with transaction(connection):
        if _format_of(connection) == 0:
            _create(connection)


def _format_of(connection: sqlite3.Connection) -> int:
    return connection.execute("PRAGMA user_version").fetchone()[0]


def _create(connection: sqlite3.Connection) -> None:
    for statement in _SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO log VALUES (?, 0)", (secrets.token_hex(8),))
    connection.execute(f"PRAGMA user_version={FORMAT}")
