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
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from struct import Struct
from typing import Final, NamedTuple

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreUnavailable
from statestore.threads import started
from statestore.waking import Sleep

SHARE: Final = 0.015
"""Seconds that a process may go on for before it queues up again."""
PAUSE: Final = 0.0005
"""Seconds that a process may pause within its share without losing the turn."""
MEMORY: Final = 1.0
"""Seconds for which a process expects others, once it met one."""
NAP: Final = 0.0002
LONGEST_NAP: Final = 0.005
GROWTH: Final = 1.01
"""How long the first in line sleeps between two looks at a turn that is in use: longer and longer, so that a long turn
costs little; but slowly, so that at the end of an ordinary share not much time is slept away.
"""

PARTING: Final = 0.1
"""Seconds that whoever closes waits for its thread at most: one that stands in line may have to stay there."""

_MOMENT: Final = Struct("d")
_COUNT: Final = Struct("I")
_TOKEN_SIZE: Final = 8
_NOTES: Final = Struct(f"dI{_TOKEN_SIZE}s")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS: Final = 0o666


class _Notes(NamedTuple):
    """What the lock file of the turn tells."""

    reserved_until: float
    """Until when the turn belongs to whoever had it last, by the machine's clock."""
    rounds: int
    """How often the log was written back."""
    holder: bytes
    """The token of whoever queued up for the turn last."""

    @classmethod
    def of(cls, turn: int) -> _Notes:
        return cls(*_NOTES.unpack(os.pread(turn, _NOTES.size, 0).ljust(_NOTES.size, b"\0")))

    def reserved_for(self) -> float:
        """For how many more seconds the turn is reserved; 0 or less if it is not."""
        seconds = self.reserved_until - time.monotonic()
        return seconds if seconds <= PAUSE else 0.0  # else it is of another clock: the machine was started anew


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
        self._queue: _Queue | None = None
        self._token = b""
        """What tells us from others who take turns."""
        self.is_after_others = True
        """Whether others may have had the turn since we had it last."""
        self.mutex = threading.Lock()
        """Held by the thread whose turn it is, or who waits for it."""
        forget_after_fork(self)

    def open(self) -> None:
        """Make the lock files, or find them."""
        self._gate, self._turn = _lock_files(self._path)
        self._is_ours_alone = os.fstat(self._turn).st_nlink <= 1  # else it is somebody's file as well
        self._token = os.urandom(_TOKEN_SIZE)

    def close(self) -> None:
        """Let go of the lock files. They stay: removing one while somebody waits for it would make two turns."""
        if self._queue is not None:
            self._queue.stop()
            self._queue = None
        fds = self._gate, self._turn
        self._gate = self._turn = -1  # first, for a fork in between
        _close(fds)

    def __del__(self) -> None:
        self.close()

    def forget(self) -> None:
        """In a child process: closing the parent's lock files does not unlock them."""
        self.mutex = threading.Lock()
        if self._queue is not None:
            self._queue.close_files()
            self._queue = None
        self.close()

    def take(self) -> None:
        """With the mutex held: wait for the turn; `StoreUnavailable` if others do not let go in time."""
        if self._turn < 0:  # in a child process, for the first time
            self.open()
        if time.monotonic() < self._reserved_until and _try(self._turn):  # we had it just now
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
            self._note(self._token, _MOMENT.size + _COUNT.size)
        if self.is_after_others or not is_alone:
            self._others_expected_until = now + MEMORY
        self._expects_others = now < self._others_expected_until

    def _take_at_once(self) -> _Notes | None:
        """If nobody waits, take the turn; what was noted before."""
        if not _try(self._gate):
            return None
        try:
            notes = _Notes.of(self._turn)
            return notes if notes.reserved_for() <= 0 and _try(self._turn) else None
        finally:
            fcntl.flock(self._gate, fcntl.LOCK_UN)

    def _take_in_line(self) -> _Notes:
        """Wait for the turn behind others; what was noted before."""
        if self._queue is None:
            self._queue = _Queue(self._path)
        if not self._queue.wait(self._timeout):
            raise StoreUnavailable(
                f"{self._path} has been written by another process for {self._timeout:g} s: try again when it is done, "
                f"or wait longer with sqlite:{self._path}?timeout=SECONDS"
            )
        return _Notes.of(self._turn)

    def hand_on(self) -> None:
        """Let others write, as soon as we do not come back. Whatever interrupts this, `let_go` must follow."""
        if self._expects_others:
            self._reserved_until = min(time.monotonic() + PAUSE, self._share_ends)
            self._note(_MOMENT.pack(self._reserved_until), 0)
        self._unlock_turn()

    def let_go(self) -> None:
        """Let others write, wherever taking the turn or handing it on was broken off. Harmless if it was not ours."""
        if self._gate >= 0:
            fcntl.flock(self._gate, fcntl.LOCK_UN)
        self._unlock_turn()

    def _unlock_turn(self) -> None:
        if self._turn >= 0:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        if self._queue is not None:
            self._queue.hand_on()

    def rounds(self) -> int:
        """How often the log was written back, by anybody; the number means nothing but that."""
        return _Notes.of(self._turn).rounds

    def begin_round(self) -> int:
        """Note that the log is written back; the new number."""
        count = (self.rounds() + 1) % 2**32
        self._note(_COUNT.pack(count), _MOMENT.size)
        return count

    def _note(self, content: bytes, place: int) -> None:
        """Write something into the lock file, for others to read."""
        if self._is_ours_alone:
            try:
                os.pwrite(self._turn, content, place)
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


class _Request:
    """Somebody who waits for the turn, and may have gone away when it comes."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.has_come = False
        self.is_given_up = False
        self.sleep = Sleep()

    def come(self) -> None:
        """With the lock held: the turn is there."""
        self.has_come = True
        self.sleep.wake()


class _Queue:
    """A thread that stands in line. The system's wait for a lock has no end, so nobody's own thread does it."""

    def __init__(self, path: str) -> None:
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._came: _Request | None = None
        self._gate, self._turn = _lock_files(path)
        try:
            self._thread = started("statestore-turn", self._stand_in_line)
        except BaseException:
            self.close_files()
            raise

    def wait(self, timeout: float) -> bool:
        """Whether the turn came in time."""
        self._came = request = _Request()
        self._requests.put(request)
        request.sleep.until_woken(timeout)
        with request.lock:
            request.is_given_up = not request.has_come
        return not request.is_given_up

    def hand_on(self) -> None:
        """Let go of the turn that came, or do not wait for it any longer."""
        request = self._came
        if request is not None:
            with request.lock:
                request.is_given_up = True
                if request.has_come:
                    fcntl.flock(self._turn, fcntl.LOCK_UN)
            self._came = None  # not before: who is interrupted comes again

    def stop(self) -> None:
        """Let the thread end, and its lock files with it: now, or if it stands in line, when its turn comes."""
        self._requests.put(None)
        if threading.current_thread() is not self._thread:  # where a store that nobody closed may be collected, too
            self._thread.join(PARTING)

    def close_files(self) -> None:
        """Close the lock files: by the thread at its end, or in a child process, where the thread is not."""
        fds = self._gate, self._turn
        self._gate = self._turn = -1  # first, for a fork in between
        _close(fds)

    def _stand_in_line(self) -> None:
        while (request := self._requests.get()) is not None:
            fcntl.flock(self._gate, fcntl.LOCK_EX)
            _wait_for(self._turn)
            fcntl.flock(self._gate, fcntl.LOCK_UN)
            with request.lock:
                if request.is_given_up:
                    fcntl.flock(self._turn, fcntl.LOCK_UN)
                else:
                    request.come()
        self.close_files()


def _lock_files(path: str) -> tuple[int, int]:
    """The gate and the turn of a database, opened; made if they are not there."""
    mode = os.stat(path).st_mode & _PERMISSIONS
    gate = _lock_file(f"{path}-gate", mode)
    try:
        return gate, _lock_file(f"{path}-turn", mode)
    except BaseException:
        os.close(gate)
        raise


def _lock_file(path: str, mode: int) -> int:
    """A lock file, opened, with the permissions of its database if we may set them, as SQLite's own files have them."""
    fd = os.open(path, _FLAGS, mode)
    status = os.fstat(fd)
    if status.st_mode & _PERMISSIONS != mode and status.st_nlink <= 1:  # else it is somebody's file as well
        with suppress(OSError):
            os.fchmod(fd, mode)
    return fd


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        if fd >= 0:
            with suppress(OSError):  # a program that becomes a daemon has closed it already
                os.close(fd)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for(turn: int) -> None:
    """For the first in line: take the turn as soon as nobody has it or may come back to it."""
    nap = NAP
    while True:
        reserved = _Notes.of(turn).reserved_for()
        if reserved <= 0 and _try(turn):
            return
        time.sleep(reserved if reserved > 0 else nap)
        nap = min(nap * GROWTH, LONGEST_NAP)
