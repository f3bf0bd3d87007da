"""Whose turn it is to write: processes one after the other, and none of them for long.

Two lock files make a turnstile. Who wants to write waits at the gate; who is through the gate waits for the turn.
So whoever has just written cannot be first again while others wait. For a moment it may, though: handing over costs
more than writing, so a process goes on until its share of time is used up. When it lets go in between, it notes in the
lock file for how long it may yet come back, and whoever is next does not even try before. A process that met nobody
lately notes nothing, and comes back until its share is used up: others may slip in between. Who queued up last is noted
there, too: if it was ourselves, nobody has written since, but for whoever slipped in.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

from statestore.engines.forking import forget_after_fork
from statestore.engines.sqlite.lock_files import (
    PAUSE,
    TOKEN_SIZE,
    Notes,
    close_lock_files,
    note_holder,
    note_rounds,
    open_lock_files,
    reserve,
    try_lock,
)
from statestore.engines.sqlite.standing_in_line import Line
from statestore.errors import StoreUnavailable

T = TypeVar("T")

SHARE: Final = 0.015
"""Seconds that a process may go on for before it queues up again."""
MEMORY: Final = 1.0
"""Seconds for which a process expects others, once it met one."""


class Turnstile:
    """The turns of one process at one database, and of its threads among each other."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._gate = self._turn = -1
        self._is_ours_alone = False
        self._share_ends = 0.0
        self._reserved_until = 0.0
        """Until when we may come back without queueing up."""
        self._others_expected_until = 0.0
        self._expects_others = False
        self._line: Line | None = None
        self._token = b""
        """What tells us from others who take turns."""
        self.is_after_others = True
        """Whether others may have had the turn since we had it last."""
        self.mutex = threading.Lock()
        """Held by the thread whose turn it is, or who waits for it."""
        forget_after_fork(self)

    def open(self) -> None:
        """Make the lock files, or find them."""
        self._gate, self._turn = open_lock_files(self._path)
        self._is_ours_alone = os.fstat(self._turn).st_nlink <= 1  # else it is somebody's file as well
        self._token = os.urandom(TOKEN_SIZE)

    def close(self) -> None:
        """Let go of the lock files. They stay: removing one while somebody waits for it would make two turns."""
        if self._line is not None:
            self._line.stop()
            self._line = None
        fds = self._gate, self._turn
        self._gate = self._turn = -1  # first, for a fork in between
        close_lock_files(fds)

    def __del__(self) -> None:
        self.close()

    def forget(self) -> None:
        """In a child process: closing the parent's lock files does not unlock them."""
        self.mutex = threading.Lock()
        if self._line is not None:
            self._line.close_files()
            self._line = None
        self.close()

    def take(self) -> None:
        """With the mutex held: wait for the turn; `StoreUnavailable` if others do not let go in time."""
        if self._turn < 0:  # in a child process, for the first time
            self.open()
        if time.monotonic() < self._reserved_until and try_lock(self._turn):  # we had it just now
            self.is_after_others = False
            return
        notes = self._take_at_once()
        is_alone = notes is not None
        if notes is None:
            notes = self._take_in_line()
        now = time.monotonic()
        self._reserved_until = self._share_ends = now + SHARE
        self.is_after_others = notes.holder != self._token
        if self.is_after_others:
            self._note(note_holder, self._token)
        if self.is_after_others or not is_alone:
            self._others_expected_until = now + MEMORY
        self._expects_others = now < self._others_expected_until

    def _take_at_once(self) -> Notes | None:
        """If nobody waits, take the turn; what was noted before."""
        if not try_lock(self._gate):
            return None
        try:
            notes = Notes.of(self._turn)
            return notes if notes.reserved_for() <= 0 and try_lock(self._turn) else None
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def _take_in_line(self) -> Notes:
        """Wait for the turn behind others; what was noted before."""
        if self._line is None:
            self._line = Line(self._path)
        if not self._line.wait(self._timeout):
            raise StoreUnavailable(
                f"{self._path} has been written by another process for {self._timeout:g} s: try again when it is done, "
                f"or wait longer with sqlite:{self._path}?timeout=SECONDS"
            )
        return Notes.of(self._turn)

    def hand_on(self) -> None:
        """Let others write, as soon as we do not come back. Whatever interrupts this, `let_go` must follow."""
        if self._expects_others:
            self._reserved_until = min(time.monotonic() + PAUSE, self._share_ends)
            self._note(reserve, self._reserved_until)
        self._unlock_turn()

    def let_go(self) -> None:
        """Let others write, wherever taking the turn or handing it on was broken off. Harmless if it was not ours."""
        if self._gate >= 0:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        self._unlock_turn()

    def _unlock_turn(self) -> None:
        if self._turn >= 0:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._line is not None:
            self._line.hand_on()

    def rounds(self) -> int:
        """How often the log was written back, by anybody; the number means nothing but that."""
        return Notes.of(self._turn).rounds

    def begin_round(self) -> int:
        """Note that the log is written back; the new number."""
        count = (self.rounds() + 1) % 2**32
        self._note(note_rounds, count)
        return count

    def _note(self, note: Callable[[int, T], None], value: T) -> None:
        """Note something in the lock file, for others to read."""
        if self._is_ours_alone:
            try:
                note(self._turn, value)
            except OSError:
                return  # on a full disk others wait for less or write back more: nothing is lost

    @contextmanager
    def turn(self) -> Generator[None]:
        """Held while writing."""
        with self.mutex:
            try:
                self.take()
                yield
                self.hand_on()
            except BaseException:
                self.let_go()
                raise
