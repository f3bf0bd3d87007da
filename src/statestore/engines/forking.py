"""What a child process must not take over from the process that forked it.

A lock that another thread held at that moment would never be released in the child, and what it guarded may be
half changed. So whatever keeps such a lock only to guard a cache forgets both in the child.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


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
    for cache in list(_caches):
        cache.forget()


os.register_at_fork(after_in_child=_forget_all)
