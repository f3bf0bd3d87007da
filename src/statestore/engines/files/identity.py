"""Telling one state of a file from another: at a glance, for certain, and without reading it twice."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

from statestore.seedform.pieces import Pieces

_PIECE: Final = 1 << 16


def status_of(directory: int, name: str) -> os.stat_result | None:
    """What a stat says of a file in an open directory; ``None`` if there is none."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


class Identity(NamedTuple):
    """What tells one state of a file from another without reading it; no proof, but a quick no."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """The identity that a stat tells."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


class Expected(NamedTuple):
    """What a file should hold, and, if this process wrote it, what a stat said of it right then."""

    body: Pieces
    written: os.stat_result | None

    def is_ours(self, status: os.stat_result) -> bool:
        """Whether a file can only be the one that this process wrote, so that its bytes need not be compared.

        Its time is one that we set, to the nanosecond: no other program's write has it. And a program that set
        that very time by hand would have changed the time of change, which nobody can set.
        """
        written = self.written
        return (
            written is not None
            and status.st_mtime_ns == written.st_mtime_ns
            and status.st_ctime_ns == written.st_ctime_ns
            and status.st_size == written.st_size
            and status.st_ino == written.st_ino
        )

    def is_held_by(self, fd: int, status: os.stat_result) -> bool:
        """Whether an open file holds exactly these bytes, compared piece by piece."""
        if self.is_ours(status):
            return True
        if status.st_size != self.body.size:
            return False
        expected = self.body.joined()
        piece = bytearray(_PIECE)  # compared as bytes: a memoryview takes a hundred times as long
        for place in range(0, len(expected), _PIECE):
            wanted = expected[place : place + _PIECE]
            if len(wanted) < _PIECE:
                del piece[len(wanted) :]
            if os.preadv(fd, [piece], place) != len(wanted) or not piece.startswith(wanted):
                return False
        return not os.pread(fd, 1, len(expected))
