"""Disks of a test's own, which it can fill, make read-only, or mount over a directory of its store."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from nobody import mode
from untried import untried

SMALL = ("-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs")
"""What to mount for a new disk of four megabytes."""


@contextmanager
def mounted(place: Path, *what: str) -> Iterator[None]:
    """While the block lasts, something is mounted there. Where nothing can be mounted, the test was not tried."""
    command = ["mount", *what, str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode:
        untried("DISK", "no disk can be mounted here, which needs root's powers")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """While the block lasts, no file of this process can become larger. For a process of a test's own."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def remount(disk: Path, how: str) -> None:
    """Make a disk read-only (``ro``), or writable again (``rw``)."""
    subprocess.run(["mount", "-o", f"remount,{how}", str(disk)], check=True)


def unwritable(directory: Path) -> AbstractContextManager[None]:
    """While the block lasts, nothing can be written there: by root neither, whom permissions do not bind."""
    if os.geteuid() == 0:
        return mounted(directory, "--bind", "-o", "ro", str(directory))
    return mode(directory, 0o500)


def fill(disk: Path, leave: int) -> Path:
    """Leave only so many bytes of a disk free; the file that takes the others."""
    filler = disk / "filler"
    with open(filler, "wb") as file:
        free = os.statvfs(disk)
        file.write(b"\0" * (free.f_bavail * free.f_bsize - leave))
    return filler
