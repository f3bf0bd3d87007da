"""Session files as they were last seen, and which ones may differ by now: one scan, and no file opened."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

SUFFIX: Final = ".json"

TICK_NS: Final = 20_000_000
"""Two writes within one tick of the kernel's clock may look alike; what was seen so soon is not trusted yet."""
SECOND_NS: Final = 1_000_000_000
COARSE_TICK_NS: Final = 2 * SECOND_NS + TICK_NS
"""How long two writes may look alike where a file system keeps whole seconds, or, as FAT does, every other one."""
NO_TIME: Final = -1
"""A time that no file has: an entry with it is never taken for the file, which is looked at again."""


def is_settled(touched_ns: int, moment_ns: int) -> bool:
    """Whether any write after a moment must show in a time that was seen then, so that what was seen can be trusted.

    A time without a fraction of a second may be one that the file system cut.
    """
    return moment_ns - touched_ns > (TICK_NS if touched_ns % SECOND_NS else COARSE_TICK_NS)


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """A session file: what tells it from another state of itself, its place, or the reason it has no summary."""

    id: str
    size: int
    mtime_ns: int
    inode: int
    is_settled: bool
    """Whether the file was old enough when it was looked at that a later write must show in its time."""
    updated_ns: int = 0
    error: str | None = None


def differences(directory: int, entries: Mapping[str, Entry]) -> tuple[list[str], set[str]]:
    """The session files that may not be as the index has them, and those that are gone."""
    suspects: list[str] = []
    seen: set[str] = set()
    with os.scandir(directory) as scan:
        for found in scan:
            if not found.name.endswith(SUFFIX):
                continue
            session_id = found.name.removesuffix(SUFFIX)
            entry = entries.get(session_id)
            if entry is not None:
                try:
                    status = found.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # deleted between the scan and the look at it
                seen.add(session_id)
                if (
                    entry.mtime_ns == status.st_mtime_ns
                    and entry.size == status.st_size
                    and entry.inode == status.st_ino
                    and entry.is_settled
                ):
                    continue
            suspects.append(session_id)
    if len(seen) == len(entries):
        return suspects, set()
    with os.scandir(directory) as scan:
        present = {found.name.removesuffix(SUFFIX) for found in scan if found.name.endswith(SUFFIX)}
    came_back = (entries.keys() & present) - seen  # deleted and made anew meanwhile, or moved while it was scanned
    return [*suspects, *came_back], entries.keys() - present
