"""Bringing what was written to the disk itself, so that it survives a power cut."""

from __future__ import annotations

import os
import sys


def flush(fd: int) -> None:
    """Bring what was written to the disk itself."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - only there does fsync stop at the drive's cache

        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def flush_directory(path: str) -> None:
    """Have the names in a directory survive."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flush(fd)
    finally:
        os.close(fd)
