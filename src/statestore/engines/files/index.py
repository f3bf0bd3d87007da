"""The index of session files: what a listing needs of each, kept for as long as the file stays the same.

It is only ever a cache. A file whose size, time and inode are those in the index is not opened again; one that
differs is read anew. The index lives in memory and, for the next process, in an SQLite file that may be deleted
at any time and is rebuilt where it is missing or damaged.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from statestore.engines.files.directory import Identity
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

log = logging.getLogger("statestore")

FORMAT: Final = 1
_TICK_NS: Final = 20_000_000
"""Two writes within one tick of the kernel's clock may look alike; a younger entry is not trusted."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (
    name BLOB PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    seen_ns INTEGER NOT NULL, summary BLOB, error TEXT
) WITHOUT ROWID
"""


class Entry(NamedTuple):
    """What is known of one session file: its summary, or why it has none."""

    identity: Identity
    seen_ns: int
    place: int
    """What newest-first listings sort by."""
    summary: SessionSummary | None
    error: str | None

    @classmethod
    def of(cls, identity: Identity, seen_ns: int, found: SessionSummary | str) -> Entry:
        """The entry for a file that was just looked at."""
        if isinstance(found, str):
            return cls(identity, seen_ns, 0, None, found)
        return cls(identity, seen_ns, -nanoseconds(found.updated_text), found, None)

    def is_settled(self) -> bool:
        """Whether the file was old enough when it was looked at that a later write must show in its time."""
        return self.seen_ns - self.identity.mtime_ns > _TICK_NS


Examine = Callable[[str], tuple[Identity, SessionSummary | str] | None]
"""Reads and parses one file: its identity, and its summary or the reason it has none."""
Confirm = Callable[[str, Entry], bool]
"""Reads one file without parsing it: whether it still is the one the entry tells of."""

_decode_summaries = msgspec.json.Decoder(list[SessionSummary | None]).decode
_encode = msgspec.json.Encoder().encode


class Index:
    """The entries of all session files, in memory and on disk."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._entries: dict[str, Entry] | None = None
        self._lock = threading.Lock()

    def refresh(self, files: Iterable[tuple[str, Identity]], examine: Examine, confirm: Confirm) -> dict[str, Entry]:
        """The entries of exactly these files; only those that changed are looked at."""
        with self._lock:
            known = self._entries if self._entries is not None else self._load()
            entries: dict[str, Entry] = {}
            changed: list[str] = []
            for name, identity in files:
                entry = known.get(name)
                if entry is not None and entry.identity == identity and (entry.is_settled() or confirm(name, entry)):
                    entries[name] = entry
                else:
                    changed.append(name)
            for name in changed:
                entry = self._examined(name, examine)
                if entry is not None:
                    entries[name] = entry
            self._settle(changed, entries, confirm)
            gone = known.keys() - entries.keys()
            if changed or gone:
                self._save({name: entries[name] for name in changed if name in entries}, gone)
            self._entries = entries
            return entries

    @staticmethod
    def _examined(name: str, examine: Examine) -> Entry | None:
        seen = time.time_ns()
        found = examine(name)
        return None if found is None else Entry.of(found[0], seen, found[1])

    @staticmethod
    def _settle(names: Iterable[str], entries: dict[str, Entry], confirm: Confirm) -> None:
        """Look once more at files that were very young, if they no longer are: the next listing need not."""
        for name in names:
            entry = entries.get(name)
            if entry is not None and not entry.is_settled():
                now = time.time_ns()
                if now - entry.identity.mtime_ns > _TICK_NS and confirm(name, entry):
                    entries[name] = entry._replace(seen_ns=now)

    # -- on disk

    def _load(self) -> dict[str, Entry]:
        if self._path is None or not os.path.exists(self._path):
            return {}
        try:
            with _Connected(self._path) as connection:
                rows = connection.execute(
                    "SELECT name, size, mtime_ns, inode, seen_ns, summary, error FROM files"
                ).fetchall()
            summaries = _decode_summaries(b"[" + b",".join(row[5] or b"null" for row in rows) + b"]")
        except (sqlite3.Error, msgspec.DecodeError) as error:
            log.warning("the index %s is damaged and will be rebuilt: %s", self._path, error)
            self._discard()
            return {}
        return {
            os.fsdecode(row[0]): Entry.of(
                Identity(row[1], row[2], row[3]), row[4], row[6] if summary is None else summary
            )
            for row, summary in zip(rows, summaries, strict=True)
        }

    def _save(self, changed: dict[str, Entry], gone: Iterable[str]) -> None:
        if self._path is None:
            return
        rows = [
            (
                os.fsencode(name),
                *entry.identity,
                entry.seen_ns,
                _encode(entry.summary) if entry.summary else None,
                entry.error,
            )
            for name, entry in changed.items()
        ]
        try:
            with _Connected(self._path) as connection, connection:
                connection.executemany("DELETE FROM files WHERE name = ?", [(os.fsencode(name),) for name in gone])
                connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        except sqlite3.DatabaseError as error:
            # Only a cache: what could not be kept is read again next time. Damage is cleared away.
            log.debug("the index %s could not be updated: %s", self._path, error)
            if not isinstance(error, sqlite3.OperationalError):
                self._discard()

    def _discard(self) -> None:
        assert self._path is not None
        for path in (self._path, f"{self._path}-wal", f"{self._path}-shm"):
            if os.path.exists(path):
                os.unlink(path)


class _Connected:
    """A connection to the index for one block."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        self._connection = sqlite3.connect(self._path, timeout=5)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version != FORMAT:
            self._connection.execute("DROP TABLE IF EXISTS files")
            self._connection.execute(f"PRAGMA user_version={FORMAT}")
        self._connection.execute(_SCHEMA)
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()
