"""The index of session files: what a listing needs of each, kept for as long as the file stays the same.

It is only ever a cache. A file whose size, time and inode are those in the index is not opened again; one that
differs is read anew. The index lives in memory and, for the next process, on disk.
"""

from __future__ import annotations

import heapq
import sqlite3
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from itertools import islice

import msgspec

from statestore.engine import SessionQuery
from statestore.engines.files.identity import Identity
from statestore.engines.files.image import is_version_of
from statestore.engines.files.index_file import IndexFile
from statestore.engines.files.own_database import OwnDatabase
from statestore.engines.files.seen import Entry, differences, is_settled
from statestore.engines.forking import forget_after_fork
from statestore.engines.selecting import has_filters, is_selected, newest_first_key
from statestore.stored import Cursor, SessionSummary
from statestore.timestamps import nanoseconds

Examine = Callable[[str], tuple[Identity, SessionSummary | str] | None]
"""Reads and parses one file: its identity, and its summary or the reason it has none."""
Confirm = Callable[[str, SessionSummary], bool]
"""Reads one file without parsing it: whether it still is the one that the summary tells of."""


class IndexDamaged(Exception):
    """What the index on disk told made no sense, or of the files at another moment. It was forgotten: look again."""


class Index:
    """What is known of all session files, in memory and on disk."""

    def __init__(self, database: OwnDatabase | None, *, is_writable: bool = True) -> None:
        self._file = IndexFile(database, is_writable=is_writable) if database is not None else None
        self._entries: dict[str, Entry] | None = None
        self._summaries: dict[str, SessionSummary] = {}
        self._ordered: dict[str, list[SessionSummary]] = {}
        self._lock = threading.Lock()
        forget_after_fork(self)

    def forget(self) -> None:
        """Begin anew, with what is on disk."""
        self._lock = threading.Lock()
        self._entries = None
        self._summaries, self._ordered = {}, {}

    def refresh(self, directory: int, examine: Examine, confirm: Confirm) -> None:
        """Bring the index up to date with a directory. Only files that changed are looked at."""
        with self._lock:
            entries = self._entries
            if entries is None:
                entries = self._entries = self._file.load() if self._file else {}
            suspects, gone = differences(directory, entries)
            if not suspects and not gone:
                return
            changed = [session_id for session_id in suspects if not self._settle_if_right(session_id, entries, confirm)]
            for session_id in (*changed, *gone):
                entries.pop(session_id, None)
                self._summaries.pop(session_id, None)
            for session_id in changed:
                self._look_at(session_id, entries, examine)
            for session_id in changed:
                self._settle_if_right(session_id, entries, confirm)  # no longer young: the next listing need not look
            self._ordered = {}
            if self._file:
                looked_at = [entry for session_id in suspects if (entry := entries.get(session_id))]
                self._file.save([(entry, self._summaries.get(entry.id)) for entry in looked_at], gone)

    def _look_at(self, session_id: str, entries: dict[str, Entry], examine: Examine) -> None:
        moment = time.time_ns()
        found = examine(session_id)
        if found is None:
            return
        identity, summary = found
        is_trusted = is_settled(identity.mtime_ns, moment)
        if isinstance(summary, str):
            entries[session_id] = Entry(session_id, *identity, is_trusted, 0, summary)
        else:
            self._summaries[session_id] = summary
            entries[session_id] = Entry(session_id, *identity, is_trusted, nanoseconds(summary.updated_text))

    def _settle_if_right(self, session_id: str, entries: dict[str, Entry], confirm: Confirm) -> bool:
        """Trust an entry that was made too soon for that, if it proves to be right after its time; whether it did."""
        entry = entries.get(session_id)
        if entry is None or entry.is_settled or entry.error or not is_settled(entry.mtime_ns, time.time_ns()):
            return False
        self._read_missing([session_id])
        summary = self._summaries.get(session_id)
        if summary is None or not confirm(session_id, summary):
            return False
        entries[session_id] = msgspec.structs.replace(entry, is_settled=True)
        return True

    def errors(self) -> list[tuple[str, str]]:
        """The files that could not be read, and why."""
        with self._lock:
            return [(entry.id, entry.error) for entry in (self._entries or {}).values() if entry.error is not None]

    def select(self, query: SessionQuery) -> list[SessionSummary]:
        """The sessions that a query asks for."""
        with self._lock:
            if query.limit is not None and query.after is None and query.order == "updated" and not has_filters(query):
                return self._newest(query.limit)
            ordered = self._all(query.order)
        rest = ordered if query.after is None else ordered[_place_after(query.after, ordered, query.order) :]
        most = len(rest) if query.limit is None else min(query.limit, len(rest))
        if not has_filters(query):
            return rest[:most]
        return list(islice((summary for summary in rest if is_selected(summary, query)), most))

    def _newest(self, limit: int) -> list[SessionSummary]:
        if "updated" in self._ordered:
            return self._ordered["updated"][:limit]
        places = ((-entry.updated_ns, entry.id) for entry in (self._entries or {}).values() if not entry.error)
        return self._summaries_of([session_id for _, session_id in heapq.nsmallest(limit, places)])

    def _all(self, order: str) -> list[SessionSummary]:
        """All summaries, newest first or by id; decoded and sorted once, until something changes."""
        if order not in self._ordered:
            entries = [entry for entry in (self._entries or {}).values() if not entry.error]
            entries.sort(key=lambda entry: entry.id if order == "id" else (-entry.updated_ns, entry.id))
            self._ordered[order] = self._summaries_of([entry.id for entry in entries])
        return self._ordered[order]

    def _summaries_of(self, session_ids: list[str]) -> list[SessionSummary]:
        """The summaries of these sessions; what is only on disk yet is read from there."""
        self._read_missing(session_ids)
        try:
            return [self._summaries[session_id] for session_id in session_ids]
        except KeyError as error:
            raise IndexDamaged(f"it does not tell of {error} as it is now") from error

    def _read_missing(self, session_ids: list[str]) -> None:
        """Read summaries from disk. What others noted there meanwhile, of files that changed since, is no use."""
        missing = [session_id for session_id in session_ids if session_id not in self._summaries]
        if not missing or not self._file:
            return
        try:
            found = self._file.summaries(missing)
        except (sqlite3.DatabaseError, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._file.discard(error)
            self._entries = None
            self._summaries, self._ordered = {}, {}
            raise IndexDamaged(str(error)) from error
        entries = self._entries or {}
        present = {
            summary.id: summary
            for summary in found
            if (entry := entries.get(summary.id)) is not None
            and is_version_of(summary.version, entry.size, entry.mtime_ns, entry.inode)
        }
        self._summaries = present | self._summaries
        for session_id in missing:
            if session_id not in self._summaries:
                del entries[session_id]


def _place_after(cursor: Cursor, ordered: list[SessionSummary], order: str) -> int:
    """Where a listing goes on that ended at a cursor."""
    if order == "id":
        return bisect_right(ordered, cursor.id, key=lambda summary: summary.id)
    place = -cursor.updated_ns, cursor.id
    return bisect_right(ordered, place, key=lambda summary: (newest_first_key(summary), summary.id))
