"""Closing an engine that is in use: calls under way are waited for, later ones are refused."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from statestore.engines.forking import forget_after_fork
from statestore.errors import StoreClosed


class Usage:
    """Counts the calls under way in one engine."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_open = False
        self._calls = 0
        self._changed = threading.Condition()
        forget_after_fork(self)

    def open(self) -> None:
        """From now on, calls are let in."""
        self._is_open = True

    @contextmanager
    def call(self) -> Generator[None]:
        """Held during a call; raises `StoreClosed` if the engine is not open."""
        with self._changed:
            if not self._is_open:
                raise StoreClosed(f"{self._url} was closed")
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                self._changed.notify_all()

    def close(self) -> bool:
        """Let no more calls in, and wait for those under way; whether it was open before."""
        with self._changed:
            was_open, self._is_open = self._is_open, False
            while self._calls:
                self._changed.wait()
        return was_open

    def forget(self) -> None:
        """In a child process: the calls of the parent's threads are not ours."""
        self._calls = 0
        self._changed = threading.Condition()
