"""A process in which only so many file handles are left."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager


def handles_in_use() -> set[int]:
    """All open descriptors of this process."""
    found = {int(name) for name in os.listdir("/proc/self/fd")}
    return {fd for fd in found if os.path.exists(f"/proc/self/fd/{fd}")}  # not the one that looked


@contextmanager
def handles_left(count: int) -> Iterator[None]:
    """While the block lasts, no more than this many can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = handles_in_use()
    limit = 0
    while count or limit in used:
        count -= limit not in used
        limit += 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
