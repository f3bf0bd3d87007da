"""The two lock files beside a database, by which processes take turns, and what is noted in one of them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from struct import Struct
from typing import Final, NamedTuple

PAUSE: Final = 0.0005
"""Seconds for which a turn may stay reserved after it was let go."""
TOKEN_SIZE: Final = 8
_RESERVED, _ROUNDS, _HOLDER = Struct("d"), Struct("I"), Struct(f"{TOKEN_SIZE}s")
_NOTES: Final = Struct(f"dI{TOKEN_SIZE}s")

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS: Final = 0o666


class Notes(NamedTuple):
    """What the lock file of the turn tells."""

    reserved_until: float
    """Until when the turn belongs to whoever had it last, by the machine's clock."""
    rounds: int
    """How often the log was written back."""
    holder: bytes
    """The token of whoever queued up for the turn last."""

    @classmethod
    def of(cls, turn: int) -> Notes:
        return cls(*_NOTES.unpack(os.pread(turn, _NOTES.size, 0).ljust(_NOTES.size, b"\0")))

    def reserved_for(self) -> float:
        """For how many more seconds the turn is reserved; 0 or less if it is not."""
        seconds = self.reserved_until - time.monotonic()
        return seconds if seconds <= PAUSE else 0.0  # else it is of another clock: the machine was started anew


def reserve(turn: int, until: float) -> None:
    """Note until when whoever lets go of the turn may come back."""
    os.pwrite(turn, _RESERVED.pack(until), 0)


def note_rounds(turn: int, count: int) -> None:
    """Note how often the log was written back."""
    os.pwrite(turn, _ROUNDS.pack(count), _RESERVED.size)


def note_holder(turn: int, token: bytes) -> None:
    """Note who queued up for the turn."""
    os.pwrite(turn, _HOLDER.pack(token), _RESERVED.size + _ROUNDS.size)


def open_lock_files(path: str) -> tuple[int, int]:
    """The gate and the turn of a database, opened; made if they are not there."""
    mode = os.stat(path).st_mode & _PERMISSIONS
    gate = _lock_file(f"{path}-gate", mode)
    try:
        return gate, _lock_file(f"{path}-turn", mode)
    except BaseException:
        os.close(gate)
        raise


def _lock_file(path: str, mode: int) -> int:
    """A lock file, opened, with the permissions of its database if we may set them, as SQLite's own files have them."""
    fd = os.open(path, _FLAGS, mode)
    status = os.fstat(fd)
    if status.st_mode & _PERMISSIONS != mode and status.st_nlink <= 1:  # else it is somebody's file as well
        with suppress(OSError):
            os.fchmod(fd, mode)
    return fd


def close_lock_files(fds: Iterable[int]) -> None:
    """Close what was opened."""
    for fd in fds:
        if fd >= 0:
            with suppress(OSError):  # a program that becomes a daemon has closed it already
                os.close(fd)


def try_lock(fd: int) -> bool:
    """Take a lock if nobody has it; whether it is ours."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
