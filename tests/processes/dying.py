"""Processes that die, or whose disk fails, at an exact point: before the n-th call that touches the disk."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import Any

TOUCHING = ("open", "write", "writev", "fsync", "rename", "unlink", "utime", "mkdir")
"""The calls of ``os`` by which a store changes a disk."""

_originals = {name: getattr(os, name) for name in TOUCHING}


class Calls:
    """Counts the calls that touch the disk, from now on, and does something at the n-th."""

    def __init__(
        self, nth: int, at_nth: Callable[[str, tuple[Any, ...]], None], names: tuple[str, ...] = TOUCHING
    ) -> None:
        self.count = 0
        self._nth = nth
        self._at_nth = at_nth
        for name in names:
            setattr(os, name, self._counted(name, _originals[name]))

    def _counted(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self._nth:
                self._at_nth(name, arguments)
            return original(*arguments, **options)

        return call


def restore() -> None:
    """Put the real calls back."""
    for name, original in _originals.items():
        setattr(os, name, original)


def die_before(nth: int) -> None:
    """Let this process be killed before the n-th call that touches the disk."""
    Calls(nth, lambda _name, _arguments: os.kill(os.getpid(), signal.SIGKILL))


def die_within(nth: int) -> None:
    """The same, but if that call writes, half of it is written."""

    def die(name: str, arguments: tuple[Any, ...]) -> None:
        if name == "writev":
            fd, parts = arguments
            data = b"".join(parts)
            _originals["write"](fd, data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    Calls(nth, die)


def fail_at(nth: int, names: tuple[str, ...], error: int = errno.ENOSPC) -> Calls:
    """Let the n-th of these calls fail, once, as a full or broken disk makes it fail."""

    def fail(_name: str, _arguments: tuple[Any, ...]) -> None:
        raise OSError(error, os.strerror(error))

    return Calls(nth, fail, names)
