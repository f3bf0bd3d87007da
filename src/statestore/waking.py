"""Sleeping until somebody calls."""

from __future__ import annotations

import threading
from contextlib import suppress


class Sleep:
    """Where a thread sleeps until another one wakes it.

    It is a bare lock and nothing more: an event or a condition that an interrupt (Ctrl-C) breaks off in the middle may
    stay locked for ever.
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def until_woken(self, timeout: float = -1) -> None:
        """Sleep, for this many seconds at most; not at all if the call came before."""
        self._lock.acquire(timeout=timeout)

    def wake(self) -> None:
        """Wake who sleeps, or keep the next one from falling asleep. Calls that nobody heard yet count as one."""
        if self._lock.locked():
            with suppress(RuntimeError):  # somebody else was faster
                self._lock.release()
