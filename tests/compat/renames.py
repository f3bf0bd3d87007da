"""In which order files took their names in some directories, as the kernel tells: exactly, whoever moved them."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

IS_POSSIBLE: Final = sys.platform == "linux"
_MOVED_FROM: Final = 0x40
_MOVED_TO: Final = 0x80
_OVERFLOW: Final = 0x4000
_EVENT: Final = struct.Struct("iIII")


class Rename(NamedTuple):
    """One file that took the place of another: what it was called before, and the name it took."""

    before: str
    name: str


class Renames:
    """Notes all renames between some directories, from now on until it is closed."""

    def __init__(self, directories: Sequence[Path]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for directory in directories:
            watch = libc.inotify_add_watch(self._fd, os.fsencode(directory), _MOVED_FROM | _MOVED_TO)
            if watch < 0:
                raise OSError(ctypes.get_errno(), f"{directory} cannot be watched")

    def in_order(self) -> list[Rename]:
        """All renames up to now, and no more after that."""
        data = b""
        try:
            while piece := os.read(self._fd, 1 << 20):
                data += piece
        except BlockingIOError:
            return _told(data)
        finally:
            os.close(self._fd)
        return _told(data)


def _told(data: bytes) -> list[Rename]:
    """A rename is two events with one cookie. The kernel holds both directories while it renames."""
    before: dict[int, str] = {}
    told: list[Rename] = []
    place = 0
    while place < len(data):
        _, mask, cookie, length = _EVENT.unpack_from(data, place)
        place += _EVENT.size
        name = os.fsdecode(data[place : place + length].rstrip(b"\0"))
        place += length
        assert not mask & _OVERFLOW, "more renames than the kernel keeps: make the round shorter"
        if mask & _MOVED_FROM:
            before[cookie] = name
        elif cookie in before:
            told.append(Rename(before.pop(cookie), name))
    return told
