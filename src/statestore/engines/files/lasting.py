"""Directories that last: they, and the names that were put into them or taken out, survive a power cut.

Whoever made a directory may have died before its name was on the disk, or be about to. So the way to each one that is
used is flushed, once.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from statestore.engines.flushing import flush, flush_directory

DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory inside a store is opened: no link is followed."""


class Lasting:
    """Makes directories, and makes them last; if that is not wanted, it only makes them."""

    def __init__(self, *, is_durable: bool) -> None:
        self._is_durable = is_durable
        self._known: set[tuple[int, int]] = set()
        """Directories, by device and inode, that are known to keep their names."""

    def make_root(self, path: str, *, create: bool) -> None:
        """Create the root, private to its user, and whatever directories lead to it, if that is wanted.

        What is there may be so new that its name is not on the disk yet: whoever made it may have died.
        """
        parent = os.path.dirname(path)
        is_there = os.path.isdir(path)
        if not is_there:
            if not create:
                return
            self.make_root(parent, create=True)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
        if self._is_durable:
            try:
                flush_directory(parent)
            except OSError:
                if not is_there:
                    raise  # else it is a place that is not ours to flush, where others made the directory for us

    def end_at(self, root: int) -> None:
        """Flush no way beyond the root, which is open."""
        self._known.add(_device_and_inode(root))

    def made(self, name: str, parent: int) -> int:
        """A directory below an open one, created if need be, open."""
        try:
            fd = os.open(name, DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=parent)
            self.flush(parent)
            return os.open(name, DIRECTORY, dir_fd=parent)
        try:
            self._flush_way_to(fd)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def flush(self, directory: int) -> None:
        """Make renames and removals in a directory last."""
        if self._is_durable:
            flush(directory)
            self._flush_way_to(directory)

    def _flush_way_to(self, directory: int) -> None:
        """Make a directory itself last."""
        here = _device_and_inode(directory)
        if not self._is_durable or here in self._known:
            return
        parent = os.open("..", DIRECTORY, dir_fd=directory)
        try:
            if _device_and_inode(parent) != here:  # else somebody moved it out of the store: this is the way's end
                flush(parent)
                self._flush_way_to(parent)
        finally:
            os.close(parent)
        self._known.add(here)


def _device_and_inode(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino
