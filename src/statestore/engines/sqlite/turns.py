"""Whose turn it is to write: processes one after the other, and none of them for long.

Two lock files make a turnstile. Who wants to write waits at the gate; who is through the gate waits for the turn.
So whoever has just written cannot be first again while others wait. For a moment it may, though: handing over costs
more than writing, so a process goes on until its share of time is used up.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Final

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreUnavailable

SHARE: Final = 0.002
"""Seconds that a process may go on for before it queues up again."""

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Turnstile:
    """The turns of one process at one database, and of its threads among each other."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._gate = self._turn = self._held = -1
        self._share_ends = 0.0
        self._queue: _Queue | None = None
        self._mutex = threading.Lock()
        forget_after_fork(self)

    def open(self) -> None:
        """Make the lock files, or find them."""
        self._gate = os.open(f"{self._path}-gate", _FLAGS, 0o600)
        self._turn = os.open(f"{self._path}-turn", _FLAGS, 0o600)

    def close(self) -> None:
        """Let go of the lock files. They stay: removing one while somebody waits for it would make two turns."""
        if self._queue is not None:
            self._queue.stop()
            self._queue = None
        for fd in (self._gate, self._turn):
            if fd >= 0:
                os.close(fd)
        self._gate = self._turn = -1

    def __del__(self) -> None:
        self.close()

    def forget(self) -> None:
        """In a child process: closing the parent's lock files does not unlock them."""
        self._mutex = threading.Lock()
        if self._queue is not None:
            self._queue.close_inherited()
            self._queue = None
        self.close()

    def take(self) -> None:
        """Wait for the turn; `StoreUnavailable` if others do not let go in time."""
        if not self._mutex.acquire(timeout=self._timeout):
            raise self._too_long("thread")
        try:
            self._held = self._take()
        except BaseException:
            self._mutex.release()
            raise

    def _take(self) -> int:
        """The lock file that is locked now."""
        if self._turn < 0:  # in a child process, for the first time
            self.open()
        if self._goes_on() or self._is_first():
            return self._turn
        if self._queue is None:
            self._queue = _Queue(self._path)
        if not self._queue.wait(self._timeout):
            raise self._too_long("process")
        self._share_ends = time.monotonic() + SHARE
        return self._queue.turn

    def _too_long(self, who: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._path} has been written by another {who} for {self._timeout:g} s: try again when it is done, "
            f"or wait longer with sqlite:{self._path}?timeout=SECONDS"
        )

    def _goes_on(self) -> bool:
        """Whether we had the turn just now, and nobody took it since."""
        return time.monotonic() < self._share_ends and _try(self._turn)

    def _is_first(self) -> bool:
        """Whether nobody waits, so that the turn is ours."""
        if not _try(self._gate):
            return False
        try:
            if not _try(self._turn):
                return False
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        self._share_ends = time.monotonic() + SHARE
        return True

    def hand_on(self) -> None:
        """Let others write."""
        fcntl.flock(self._held, fcntl.LOCK_UN)
        self._mutex.release()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Held while writing."""
        self.take()
        try:
            yield
        finally:
            self.hand_on()


class _Request:
    """Somebody who waits for the turn, and may have gone away when it comes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.came = threading.Event()
        self.is_given_up = False


class _Queue:
    """A thread that stands in line. The system's wait for a lock has no end, so nobody's own thread does it."""

    def __init__(self, path: str) -> None:
        self._gate = os.open(f"{path}-gate", _FLAGS, 0o600)
        self.turn = os.open(f"{path}-turn", _FLAGS, 0o600)
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        threading.Thread(target=self._stand_in_line, name="statestore-turn", daemon=True).start()

    def wait(self, timeout: float) -> bool:
        """Whether the turn came in time."""
        request = _Request()
        self._requests.put(request)
        try:
            if request.came.wait(timeout):
                return True
        except BaseException:
            if not self._give_up(request):
                fcntl.flock(self.turn, fcntl.LOCK_UN)
            raise
        return not self._give_up(request)

    @staticmethod
    def _give_up(request: _Request) -> bool:
        """Whether nobody waits any more; if not, the turn has come."""
        with request.lock:
            request.is_given_up = not request.came.is_set()
            return request.is_given_up

    def stop(self) -> None:
        """Let the thread end, when what it waits for comes."""
        self._requests.put(None)

    def close_inherited(self) -> None:
        """In a child process, where the thread is not: close its lock files."""
        os.close(self._gate)
        os.close(self.turn)

    def _stand_in_line(self) -> None:
        while (request := self._requests.get()) is not None:
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            fcntl.flock(self.turn, fcntl.LOCK_EX)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            with request.lock:
                if request.is_given_up:
                    fcntl.flock(self.turn, fcntl.LOCK_UN)
                else:
                    request.came.set()
        os.close(self._gate)
        os.close(self.turn)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
