"""Closing an engine that is in use: calls under way are waited for, later ones are refused."""

from __future__ import annotations

import threading

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreClosed


class Usage:
    """Counts the calls under way in one engine: ``with usage:`` is one, and raises `StoreClosed` if it is not open."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_open = False
        self._calls = 0
        self._lock = threading.Lock()
        self._all_done = threading.Condition(self._lock)
        forget_after_fork(self)

    def open(self) -> None:
        """From now on, calls are let in."""
        self._is_open = True

    def __enter__(self) -> None:
        with self._lock:
            if not self._is_open:
                raise StoreClosed(f"{self._url} was closed")
            self._calls += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._calls -= 1
            if not self._is_open:
                self._all_done.notify_all()

    def close(self) -> bool:
        """Let no more calls in, and wait for those under way; whether it was open before."""
        with self._lock:
            was_open, self._is_open = self._is_open, False
            while self._calls:
                self._all_done.wait()
        return was_open

    def forget(self) -> None:
        """In a child process: the calls of the parent's threads are not ours."""
        self._calls = 0
        self._lock = threading.Lock()
        self._all_done = threading.Condition(self._lock)
