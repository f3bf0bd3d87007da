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
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Final

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreUnavailable

SHARE: Final = 0.004
"""Seconds that a process may go on for before it queues up again."""

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Turnstile:
    """The turns of one process at one database, and of its threads among each other."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._gate = self._turn = -1
        self._share_ends = 0.0
        self._queue: _Queue | None = None
        self.mutex = threading.Lock()
        """Held by the thread whose turn it is, or who waits for it."""
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
        fds = self._gate, self._turn
        self._gate = self._turn = -1  # first, for a fork in between
        for fd in fds:
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()

    def forget(self) -> None:
        """In a child process: closing the parent's lock files does not unlock them."""
        self.mutex = threading.Lock()
        if self._queue is not None:
            self._queue.close_inherited()
            self._queue = None
        self.close()

    def take(self) -> None:
        """With the mutex held: wait for the turn; `StoreUnavailable` if others do not let go in time."""
        if self._turn < 0:  # in a child process, for the first time
            self.open()
        if self._goes_on() or self._is_first():
            return
        if self._queue is None:
            self._queue = _Queue(self._path)
        if not self._queue.wait(self._timeout):
            raise StoreUnavailable(
                f"{self._path} has been written by another process for {self._timeout:g} s: try again when it is done, "
                f"or wait longer with sqlite:{self._path}?timeout=SECONDS"
            )
        self._share_ends = time.monotonic() + SHARE

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
        """Let others write. Harmless if the turn was not ours."""
        if self._turn >= 0:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._queue is not None:
            self._queue.hand_on()

    @contextmanager
    def turn(self) -> Generator[None]:
        """Held while writing."""
        with self.mutex:
            try:
                self.take()
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
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._came: _Request | None = None
        with ExitStack() as stack:
            self._gate = os.open(f"{path}-gate", _FLAGS, 0o600)
            stack.callback(os.close, self._gate)
            self._turn = os.open(f"{path}-turn", _FLAGS, 0o600)
            stack.callback(os.close, self._turn)
            threading.Thread(target=self._stand_in_line, name="statestore-turn", daemon=True).start()
            stack.pop_all()

    def wait(self, timeout: float) -> bool:
        """Whether the turn came in time."""
        self._came = request = _Request()
        self._requests.put(request)
        request.came.wait(timeout)
        with request.lock:
            request.is_given_up = not request.came.is_set()
        return not request.is_given_up

    def hand_on(self) -> None:
        """Let go of the turn that came, or do not wait for it any longer."""
        request, self._came = self._came, None
        if request is not None:
            with request.lock:
                request.is_given_up = True
                if request.came.is_set():
                    fcntl.flock(self._turn, fcntl.LOCK_UN)

    def stop(self) -> None:
        """Let the thread end, when what it waits for comes."""
        self._requests.put(None)

    def close_inherited(self) -> None:
        """In a child process, where the thread is not: close its lock files."""
        os.close(self._gate)
        os.close(self._turn)

    def _stand_in_line(self) -> None:
        while (request := self._requests.get()) is not None:
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            with request.lock:
                if request.is_given_up:
                    fcntl.flock(self._turn, fcntl.LOCK_UN)
                else:
                    request.came.set()
        os.close(self._gate)
        os.close(self._turn)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
