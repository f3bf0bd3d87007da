"""Closing an engine that is in use: calls under way are waited for, later ones are refused."""

from __future__ import annotations

import threading
from threading import get_ident

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreClosed


class Usage:
    """Knows the threads that are in a call of one engine: ``with usage:`` is one; `StoreClosed` if it is not open.

    A thread is in one call at a time. So one that was interrupted on its way in or out is put right by its next call.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_open = False
        self._inside: set[int] = set()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        forget_after_fork(self)

    def open(self) -> None:
        """From now on, calls are let in."""
        self._is_open = True

    def __enter__(self) -> None:
        self._inside.add(get_ident())  # before the look: who closes waits for whoever was let in
        if not self._is_open:
            self.__exit__()
            raise StoreClosed(f"{self._url} was closed")

    def __exit__(self, *_: object) -> None:
        self._inside.discard(get_ident())
        if not self._is_open:
            with self._lock:
                self._changed.notify_all()

    def close(self) -> bool:
        """Let no more calls in, and wait for those under way; whether it was open before."""
        with self._lock:
            was_open, self._is_open = self._is_open, False  # before the look: who comes now is not let in
            self._inside.discard(get_ident())
            while self._inside:
                self._changed.wait()
        return was_open

    def forget(self) -> None:
        """In a child process: the calls of the parent's threads are not ours."""
        self._inside = set()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
