"""Standing in line for the turn to write, where it does not come at once."""

from __future__ import annotations

import fcntl
import threading
import time
from queue import SimpleQueue
from typing import Final

from statestore.engines.sqlite.lock_files import Notes, close_lock_files, open_lock_files, try_lock
from statestore.threads import started
from statestore.waking import Sleep

NAP: Final = 0.0002
LONGEST_NAP: Final = 0.005
GROWTH: Final = 1.01
"""How long the first in line sleeps between two looks at a turn that is in use: longer and longer, so that a long turn
costs little; but slowly, so that at the end of an ordinary share not much time is slept away.
"""

PARTING: Final = 0.1
"""Seconds that whoever closes waits for its thread at most: one that stands in line may have to stay there."""


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


class Line:
    """A thread that stands in line. The system's wait for a lock has no end, so nobody's own thread does it."""

    def __init__(self, path: str) -> None:
        self._requests: SimpleQueue[_Request | None] = SimpleQueue()
        self._came: _Request | None = None
        self._gate, self._turn = open_lock_files(path)
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
        close_lock_files(fds)

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


def _wait_for(turn: int) -> None:
    """For the first in line: take the turn as soon as nobody has it or may come back to it."""
    nap = NAP
    while True:
        reserved = Notes.of(turn).reserved_for()
        if reserved <= 0 and try_lock(turn):
            return
        time.sleep(reserved if reserved > 0 else nap)
        nap = min(nap * GROWTH, LONGEST_NAP)
