"""What a child process must not take over from the process that forked it.

A lock that another thread held at that moment would never be released in the child, and what it guarded may be
half changed. So whatever keeps such a lock only to guard a cache forgets both in the child; and a lock that guards
more than that is held by whoever forks.
"""

from __future__ import annotations

import os
import threading
from typing import Final, Protocol
from weakref import WeakSet

PATIENCE: Final = 10.0
"""Seconds that a fork waits for a lock, or for calls under way in other threads."""


class Forgetful(Protocol):
    """A cache that can begin anew."""

    def forget(self) -> None:
        """Drop everything, the lock included."""
        ...


_caches: WeakSet[Forgetful] = WeakSet()


def forget_after_fork(cache: Forgetful) -> None:
    """Have a cache forget everything in every process that is forked from this one."""
    _caches.add(cache)


def _forget_all() -> None:
    failures: list[Exception] = []
    for cache in list(_caches):
        try:
            cache.forget()
        except Exception as error:  # noqa: BLE001 - told below: one that fails keeps no other from forgetting
            failures.append(error)
    if failures:
        raise ExceptionGroup("after a fork, something was not forgotten", failures)


_guards: WeakSet[threading.Lock] = WeakSet()
_held: list[threading.Lock] = []
_forking = threading.RLock()
"""Held from before a fork until after it, and while a lock is noted, so that none is missed."""


def hold_while_forking(lock: threading.Lock) -> None:
    """Have a lock held by whoever forks: so what it guards is whole in the child, and the lock is free there."""
    with _forking:
        _guards.add(lock)


def _hold_all() -> None:
    _forking.acquire()
    _held.extend(lock for lock in list(_guards) if lock.acquire(timeout=PATIENCE))


def _let_go_of_all() -> None:
    while _held:
        _held.pop().release()


def _go_on_in_parent() -> None:
    _let_go_of_all()
    _forking.release()


def _go_on_in_child() -> None:
    global _forking  # noqa: PLW0603 - who released the parent's would have to be the thread that took it
    _let_go_of_all()
    _forking = threading.RLock()
    _forget_all()


os.register_at_fork(before=_hold_all, after_in_parent=_go_on_in_parent, after_in_child=_go_on_in_child)
