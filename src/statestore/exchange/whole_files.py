"""Writing a file wholly or not at all: beside its place first, then into it by a rename."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from typing import Final

from statestore.engines.flushing import flush, flush_directory
from statestore.errors import InvalidValue, StoreUnavailable

_LINKS: Final = 40
"""How many links in a row are followed, as the system itself does."""


def write_whole(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> int:
    """Write chunks to a file, which is there afterwards with all of them; how many bytes these are.

    If anything goes wrong in between, Ctrl-C included, what was at the path before is there still, and nothing else.
    What is no plain file, like a pipe, is written to directly, and so is ``/dev/stdout``, wherever that leads: what
    somebody else opened stays theirs, and a file that they append to is appended to. `StoreUnavailable` says why it
    cannot be written.
    """
    given: str = os.fspath(path)
    if not hasattr(chunks, "__iter__"):
        raise InvalidValue(
            f"write_whole takes chunks of bytes, not {type(chunks).__name__}: "
            "of an asynchronous export, [chunk async for chunk in …]"
        )
    try:
        fd = _opened_by_somebody(given)
        if fd is not None:
            try:
                return _written(fd, chunks)
            finally:
                os.close(fd)
        target = os.path.realpath(given)
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            with open(target, "wb") as file:
                return _written(file.fileno(), chunks)
        if not os.path.isdir(os.path.dirname(target)):
            raise StoreUnavailable(f"{given} cannot be written: there is no directory {os.path.dirname(target)}")
        return _replaced(target, chunks)
    except OSError as error:
        raise StoreUnavailable(f"{given} cannot be written: {error.strerror or error}") from error


def _opened_by_somebody(path: str) -> int | None:
    """A descriptor for a path that stands for one, as ``/dev/stdout`` and ``/proc/self/fd/1`` do."""
    for _ in range(_LINKS):
        directory, name = os.path.split(os.path.abspath(path))
        directory = os.path.realpath(directory)
        if directory in ("/dev/fd", f"/proc/{os.getpid()}/fd") and name.isdigit():
            return os.dup(int(name))  # opened anew, it would be written from its beginning
        if directory.startswith("/proc/"):
            return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if not os.path.islink(path):
            break
        path = os.path.join(directory, os.readlink(path))
    return None


def _replaced(target: str, chunks: Iterable[bytes]) -> int:
    directory, name = os.path.split(target)
    temporary = os.path.join(directory, f".{name[:100]}.{secrets.token_hex(4)}.part")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            if os.path.exists(target):
                os.fchmod(fd, stat.S_IMODE(os.stat(target).st_mode))
            size = _written(fd, chunks)
            flush(fd)
        finally:
            os.close(fd)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
    flush_directory(directory)
    return size


def _written(fd: int, chunks: Iterable[bytes]) -> int:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(fd, rest) :]
    return size
