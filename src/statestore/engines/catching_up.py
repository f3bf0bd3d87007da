"""Bringing an index up to date when somebody asks for it, though many may ask at once."""

from __future__ import annotations

import threading

from statestore.engines.forking import forget_after_fork


class CatchingUp:
    """Held by the thread that lets an index catch up. Others wait for it: by then there is little left to do.

    If each did its own share of the work, they would all queue up before those who write.
    """

    def __init__(self) -> None:
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """In a child process: nobody is at it."""
        self.lock = threading.Lock()
