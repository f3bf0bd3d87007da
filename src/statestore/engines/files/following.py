"""The change log: what every session file was when it was last looked at, and what changed from look to look.

The seed's layout has no log, and other programs write it as they like. So what happened is worked out by comparing
the files with what the log knows of them, whenever somebody searches or watches.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, TypeVar

import msgspec

from statestore.engines.files.directory import Directory
from statestore.engines.files.image import KEPT_BYTES
from statestore.engines.files.log_file import LogDamaged, LogFile, transaction
from statestore.engines.files.looking import Look, Looker
from statestore.engines.files.noting import LogState, log_state, note_gone, note_state, note_unreadable, trim
from statestore.engines.files.own_database import OwnDatabase
from statestore.engines.files.seen import Entry, differences, is_settled
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreUnavailable
from statestore.jsontext import is_unicode
from statestore.names import SESSIONS

log = logging.getLogger("statestore")
T = TypeVar("T")

FILE: Final = "changes.db"
FILES_A_STEP: Final = 64
BYTES_A_STEP: Final = KEPT_BYTES // 4
"""What was parsed before a step holds a lock is still kept when it does."""
QUIET_SECONDS: Final = 1.0
"""How long the directory's time alone is believed: who writes a file in place does not touch it."""

_encode = msgspec.json.Encoder().encode
_decode_entries = msgspec.json.Decoder(list[Entry]).decode


class ChangeLog:
    """What is known of all session files, in memory and in the log."""

    def __init__(self, directory: Directory, sessions: SessionFiles, *, is_writable: bool) -> None:
        self._directory = directory
        self._sessions = sessions
        self._file = LogFile(OwnDatabase(directory, FILE) if is_writable else None)
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """Begin anew, with what is in the log."""
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._state: LogState | None = None
        self._scanned = (0, 0, 0.0)

    def close(self) -> None:
        """Let go of a log that is in memory alone."""
        self._file.close()

    def use(self, act: Callable[[sqlite3.Connection, Looker], T]) -> T:
        """What an act gives back that reads the log and looks at files."""
        with self._directory.category(SESSIONS) as fd:
            looker = Looker(self._sessions, fd)
            return self._file.use(lambda connection: act(connection, looker))

    def errors(self) -> list[tuple[str, str]]:
        """The files that could not be read, and why."""
        with self._lock:
            return [(entry.id, entry.error) for entry in self._entries.values() if entry.error is not None]

    # -- following

    def quiet_state(self) -> LogState | None:
        """How far the log was at the last scan, if nothing can have happened since; ``None`` if something may have."""
        with self._directory.category(SESSIONS) as fd:
            return self._state if self._is_quiet(fd) else None

    def _is_quiet(self, fd: int | None) -> bool:
        touched, moment, clock = self._scanned
        if fd is None or time.monotonic() - clock > QUIET_SECONDS:
            return False
        return touched == os.fstat(fd).st_mtime_ns and is_settled(touched, moment)

    def catch_up(self, connection: sqlite3.Connection, looker: Looker) -> LogState:
        """Note what happened to the session files; how far the log is then. Only files that changed are looked at."""
        with self._lock:
            state = log_state(connection)
            if self._state is None or self._state.identity != state.identity:
                self._entries = _entries_in(connection)
            begun = time.time_ns(), time.monotonic()
            touched = os.fstat(looker.fd).st_mtime_ns if looker.fd is not None else 0
            if looker.fd is None:
                suspects, gone = [], set(self._entries)
            else:
                suspects, gone = differences(looker.fd, self._entries)
            waiting = deque((*suspects, *gone))
            while waiting:
                self._take_in(connection, looker, waiting)
            self._state = log_state(connection)
            self._scanned = (touched, *begun)
            return self._state

    @contextmanager
    def deleting(self, session_ids: Sequence[str]) -> Generator[None]:
        """A block that may delete sessions: if there is a log, it has them as they were, and then that they are gone.

        A scan would not see a session that came and went between two looks, nor one that was made anew just alike.
        """
        if not session_ids or not self._file.is_there():
            yield
            return
        self._note(session_ids)
        yield
        self._note(session_ids)

    def _note(self, session_ids: Sequence[str]) -> None:
        """Note what some files are now. If that cannot be done, the next scan does it."""

        def note(connection: sqlite3.Connection, looker: Looker) -> None:
            for some in _chunks(session_ids):
                with transaction(connection):
                    for session_id in some:
                        note_now(connection, looker, session_id)
                    trim(connection)

        try:
            self.use(note)
        except StoreUnavailable as error:
            log.debug("the change log was not told of a deletion: %s", error)

    def _take_in(self, connection: sqlite3.Connection, looker: Looker, waiting: deque[str]) -> None:
        """Look at the first files that wait, take them off, and note what is new."""
        unlike: list[str] = []
        size = 0
        for _ in range(min(FILES_A_STEP, len(waiting))):
            session_id = waiting.popleft()
            look = looker.look(session_id)
            if not self._is_noted(connection, looker, session_id, look):
                unlike.append(session_id)
            size += 0 if look is None else look.entry.size
            if size >= BYTES_A_STEP:
                break
        found: list[tuple[str, Look | None]] = []
        if unlike:
            with transaction(connection):
                found = [(session_id, note_now(connection, looker, session_id)) for session_id in unlike]
                trim(connection)
        for session_id, look in found:
            if look is None:
                self._entries.pop(session_id, None)
                self._sessions.forget(session_id)
            else:
                self._entries[session_id] = look.entry

    def _is_noted(self, connection: sqlite3.Connection, looker: Looker, session_id: str, look: Look | None) -> bool:
        """Whether the log has a file just as it is. If not, what is to be noted of it is worked out, without a lock."""
        if look is None:
            return False
        is_seen = look.entry == self._entries.get(session_id)
        if look.image is None:
            return is_seen
        row = connection.execute("SELECT version FROM sessions WHERE id = ?", (session_id,)).fetchone()
        if row == (str(look.image.version),):
            look.image.text.forget_records()
            return is_seen
        looker.prepare(look.image)
        return False


def note_now(connection: sqlite3.Connection, looker: Looker, session_id: str) -> Look | None:
    """In a transaction: note what a file is at this moment, so that the log goes forward only; what it is."""
    look = looker.look(session_id)
    if not is_unicode(session_id):
        return look
    if look is None:
        note_gone(connection, session_id)
    elif look.image is not None:
        image, entry = look.image, _encode(look.entry).decode()
        note_state(connection, session_id, entry, str(image.version), lambda: looker.state(image))
    elif look.is_known:
        note_unreadable(connection, session_id, _encode(look.entry).decode())
    return look


def _entries_in(connection: sqlite3.Connection) -> dict[str, Entry]:
    """All entries of the log."""
    (joined,) = connection.execute("SELECT CAST(group_concat(entry) AS BLOB) FROM sessions").fetchone()
    try:
        return {entry.id: entry for entry in _decode_entries(b"[" + (joined or b"") + b"]")}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogDamaged(str(error)) from error


def _chunks(session_ids: Iterable[str]) -> Generator[list[str]]:
    waiting = iter(session_ids)
    while some := list(islice(waiting, FILES_A_STEP)):
        yield some
