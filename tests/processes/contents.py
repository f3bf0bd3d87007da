"""What lies in a directory, in a form that can be compared: nothing was deleted, nothing was changed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

OWN = ".statestore"


def snapshot(root: Path) -> dict[bytes, tuple[object, ...]]:
    """Everything below a directory but the store's own corner: kind, permissions, time, content."""
    found: dict[bytes, tuple[object, ...]] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        if directory == os.fsencode(root):
            names[:] = [name for name in names if name != OWN.encode()]
        for name in (*names, *files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            content: object = None
            if stat.S_ISLNK(status.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    content = file.read()
            is_directory = stat.S_ISDIR(status.st_mode)
            found[path] = (status.st_mode, None if is_directory else status.st_mtime_ns, status.st_ino, content)
    return found


def leftovers(root: Path) -> list[str]:
    """The temporary files and the journal that a store's own corner holds."""
    own = root / OWN
    return [*sorted(os.listdir(own / "tmp")), *(["journal"] if os.path.lexists(own / "journal") else [])]
