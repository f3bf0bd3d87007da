"""Whose turn it is to write: processes one after the other, and none of them for long.

Two lock files make a turnstile. Who wants to write waits at the gate; who is through the gate waits for the turn.
So whoever has just written cannot be first again while others wait. For a moment it may, though: handing over costs
more than writing, so a process goes on until its share of time is used up.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from statestore.engines.forking import forget_after_fork

SHARE: Final = 0.002
"""Seconds that a process may go on for before it queues up again."""


class Turnstile:
    """The turns of one process at one database."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._gate = self._turn = -1
        self._share_ends = 0.0
        forget_after_fork(self)

    def open(self) -> None:
        """Make the lock files, or find them."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._gate = os.open(f"{self._path}-gate", flags, 0o600)
        self._turn = os.open(f"{self._path}-turn", flags, 0o600)

    def close(self) -> None:
        """Let go of the lock files. They stay: removing one while somebody waits for it would make two turns."""
        for fd in (self._gate, self._turn):
            if fd >= 0:
                os.close(fd)
        self._gate = self._turn = -1

    def forget(self) -> None:
        """In a child process: closing the parent's lock files does not unlock them."""
        was_open = self._turn >= 0
        self.close()
        if was_open:
            self.open()

    def take(self) -> None:
        """Wait for the turn; `StoreUnavailable` if others do not let go in time."""
        if time.monotonic() > self._share_ends or not _try(self._turn):
            self._queue_up()

    def hand_on(self) -> None:
        """Let others write."""
        fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextmanager
    def turn(self) -> Generator[None]:
        """Held while writing."""
        self.take()
        try:
            yield
        finally:
            self.hand_on()

    def _queue_up(self) -> None:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        self._share_ends = time.monotonic() + SHARE


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
