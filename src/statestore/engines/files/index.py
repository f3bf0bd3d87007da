"""The index of session files: what a listing needs of each, kept for as long as the file stays the same.

It is only ever a cache. A file whose size, time and inode are those in the index is not opened again; one that
differs is read anew. The index lives in memory and, for the next process, in an SQLite file that may be deleted
at any time and is rebuilt where it is missing or damaged.
"""

from __future__ import annotations

import heapq
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from statestore.engine import SessionQuery
from statestore.engines.files.directory import Identity
from statestore.engines.selecting import has_filters, is_selected
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

log = logging.getLogger("statestore")

FORMAT: Final = 1
SUFFIX: Final = ".json"

_TICK_NS: Final = 20_000_000
"""Two writes within one tick of the kernel's clock may look alike; what was seen so soon is not trusted yet."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS files (
    id TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
    is_settled INTEGER NOT NULL, updated TEXT NOT NULL, summary BLOB, error TEXT
) WITHOUT ROWID
"""

Row = tuple[str, int, int, int, int, int, bytes | None, str | None]
"""A session file: id, size, mtime_ns, inode, is_settled, updated in ns, its summary as JSON or the reason it has none.

A plain tuple, as SQLite gives it: thousands of them are looked at in every listing.
"""

Examine = Callable[[str], tuple[Identity, SessionSummary | str] | None]
"""Reads and parses one file: its identity, and its summary or the reason it has none."""
Confirm = Callable[[str, SessionSummary], bool]
"""Reads one file without parsing it: whether it still is the one that the summary tells of."""

_encode = msgspec.json.Encoder().encode
_decode_one = msgspec.json.Decoder(SessionSummary).decode
_decode_all = msgspec.json.Decoder(list[SessionSummary]).decode


class Index:
    """What is known of all session files, in memory and on disk."""

    def __init__(self, path: str | None) -> None:
        self._file = IndexFile(path) if path is not None else None
        self._rows: dict[str, Row] | None = None
        self._summaries: dict[str, SessionSummary] = {}
        self._newest_first: list[SessionSummary] | None = None
        self._lock = threading.Lock()

    def refresh(self, directory: int, examine: Examine, confirm: Confirm) -> None:
        """Bring the index up to date with a directory. Only files that changed are looked at."""
        with self._lock:
            rows = self._rows
            if rows is None:
                rows = self._rows = self._file.load() if self._file else {}
            same, suspects = _compare(directory, rows)
            if not suspects and len(same) == len(rows):
                return
            gone = rows.keys() - same - set(suspects)
            changed = [session_id for session_id in suspects if not self._is_confirmed(session_id, rows, confirm)]
            seen = {session_id: _row(session_id, examine) for session_id in changed}
            for session_id in (*changed, *gone):
                rows.pop(session_id, None)
                self._summaries.pop(session_id, None)
            rows.update({session_id: row for session_id, row in seen.items() if row is not None})
            for session_id in changed:
                self._is_confirmed(session_id, rows, confirm)  # no longer young: the next listing need not look
            self._newest_first = None
            if self._file:
                self._file.save([row for session_id in suspects if (row := rows.get(session_id))], gone)

    def _is_confirmed(self, session_id: str, rows: dict[str, Row], confirm: Confirm) -> bool:
        """Whether a row that was seen too soon to be trusted proves to be right; if its time is over, it is settled."""
        row = rows.get(session_id)
        if row is None or row[4] or row[6] is None or time.time_ns() - row[2] <= _TICK_NS:
            return False
        if not confirm(session_id, self._summary(row)):
            return False
        rows[session_id] = (*row[:4], 1, *row[5:])
        return True

    def errors(self) -> list[tuple[str, str]]:
        """The files that could not be read, and why."""
        with self._lock:
            return [(row[0], row[7]) for row in (self._rows or {}).values() if row[7] is not None]

    def select(self, query: SessionQuery) -> list[SessionSummary]:
        """The sessions that a query asks for."""
        with self._lock:
            if query.limit is not None and query.after is None and query.order == "updated" and not has_filters(query):
                return self._newest(query.limit)
            found = [summary for summary in self._all() if is_selected(summary, query)]
        if query.order == "id":
            found.sort(key=lambda summary: summary.id)
        if query.after is not None:
            after = query.after
            if query.order == "id":
                found = [summary for summary in found if summary.id > after.id]
            else:
                place = (-after.updated_ns, after.id)
                found = [s for s in found if (-nanoseconds(s.updated_text), s.id) > place]
        return found[: query.limit]

    def _newest(self, limit: int) -> list[SessionSummary]:
        if self._newest_first is not None:
            return self._newest_first[:limit]
        rows = (self._rows or {}).values()
        return [self._summary(row) for _, _, row in heapq.nsmallest(limit, _places(rows))]

    def _all(self) -> list[SessionSummary]:
        """All summaries, newest first; decoded and sorted once, until something changes."""
        if self._newest_first is None:
            rows = (self._rows or {}).values()
            undecoded = [row[6] for row in rows if row[6] is not None and row[0] not in self._summaries]
            for summary in _decode_all(b"[" + b",".join(undecoded) + b"]"):
                self._summaries[summary.id] = summary
            self._newest_first = [self._summaries[session_id] for _, session_id, _ in sorted(_places(rows))]
        return self._newest_first

    def _summary(self, row: Row) -> SessionSummary:
        summary = self._summaries.get(row[0])
        if summary is None:
            assert row[6] is not None
            summary = self._summaries[row[0]] = _decode_one(row[6])
        return summary


def _places(rows: Iterable[Row]) -> Iterable[tuple[int, str, Row]]:
    return ((-row[5], row[0], row) for row in rows if row[6] is not None)


def _row(session_id: str, examine: Examine) -> Row | None:
    moment = time.time_ns()
    found = examine(session_id)
    if found is None:
        return None
    identity, summary = found
    if isinstance(summary, str):
        return (session_id, *identity, 0, 0, None, summary)
    is_settled = int(moment - identity.mtime_ns > _TICK_NS)
    return (session_id, *identity, is_settled, nanoseconds(summary.updated_text), _encode(summary), None)


def _compare(directory: int, rows: dict[str, Row]) -> tuple[set[str], list[str]]:
    """The session files that are as the index has them, and those that may not be."""
    same: set[str] = set()
    suspects: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if not name.endswith(SUFFIX):
                continue
            session_id = name[:-5]
            row = rows.get(session_id)
            if row is not None and row[4]:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # deleted between the scan and the look at it
                if (row[2], row[1], row[3]) == (status.st_mtime_ns, status.st_size, status.st_ino):
                    same.add(session_id)
                    continue
            suspects.append(session_id)
    return same, suspects


class IndexFile:
    """The index on disk, for the next process."""

    def __init__(self, path: str) -> None:
        self._path = path

    def load(self) -> dict[str, Row]:
        """All rows; none if there is no file, or a damaged one."""
        if not os.path.exists(self._path):
            return {}
        try:
            connection = self._connect()
            try:
                rows: list[Row] = connection.execute(
                    "SELECT id, size, mtime_ns, inode, is_settled, CAST(updated AS INTEGER), summary, error FROM files"
                ).fetchall()
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            log.warning("the index %s cannot be read and will be rebuilt: %s", self._path, error)
            self._discard()
            return {}
        return {row[0]: row for row in rows}

    def save(self, changed: Sequence[Row], gone: Iterable[str]) -> None:
        """Keep what changed. It is only a cache: what cannot be kept is read again next time."""
        rows = [(*row[:5], str(row[5]), *row[6:]) for row in changed if row[0].isprintable()]
        try:
            connection = self._connect()
            try:
                with connection:
                    connection.executemany("DELETE FROM files WHERE id = ?", [(i,) for i in gone if i.isprintable()])
                    connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            finally:
                connection.close()
        except sqlite3.DatabaseError as error:
            log.debug("the index %s could not be updated: %s", self._path, error)
            if not isinstance(error, sqlite3.OperationalError):
                self._discard()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=5)
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

    def _discard(self) -> None:
        for path in (self._path, f"{self._path}-wal", f"{self._path}-shm"):
            if os.path.isfile(path):
                os.unlink(path)
