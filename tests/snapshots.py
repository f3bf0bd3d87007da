"""A directory as it is now, down to inodes and times: two equal snapshots mean that nothing was touched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    mode: int
    inode: int
    mtime_ns: int
    body: bytes | None


def snapshot(directory: Path) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for root, directories, files in os.walk(directory):
        for name in (".", *directories, *files):
            path = Path(root, name)
            status = path.lstat()
            body = path.read_bytes() if path.is_file() and not path.is_symlink() else None
            found[str(path.relative_to(directory))] = Entry(status.st_mode, status.st_ino, status.st_mtime_ns, body)
    return found


def visible(directory: Path) -> dict[str, Entry]:
    """The same without the store's own corner, which holds locks and caches."""
    return {name: entry for name, entry in snapshot(directory).items() if not name.startswith(".statestore")}
