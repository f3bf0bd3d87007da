"""Locks that hold across processes and threads: ``flock`` on files of their own, a fixed number of them.

An item's lock is one of a few stripes, so that no lock file need ever be removed. One more lock is for batches
of several files. Each holder opens the file anew; so threads exclude each other as processes do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import zlib
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final

from statestore.errors import StoreUnavailable

STRIPES: Final = 64
ALL_STRIPES: Final = [f"{number:02x}" for number in range(STRIPES)]
BATCHES: Final = "batches"
PREPARING: Final = "preparing"

_held: dict[int, tuple[int, int, int]] = {}
"""The lock files that are open, each with its thread and what tells it from other files."""


def _close_inherited() -> None:
    """After a fork, in the child: close the parent's locks, which does not release them."""
    for fd in _held:
        os.close(fd)
    _held.clear()


os.register_at_fork(after_in_child=_close_inherited)


def stripe_of(item: Iterable[str]) -> str:
    """The name of the lock that guards an item."""
    return f"{zlib.crc32('/'.join(item).encode('utf-8', 'surrogatepass')) % STRIPES:02x}"


class Locks:
    """The lock files of one store. Who only reads takes what locks there are, and makes none."""

    def __init__(self, directory: int, *, is_writable: bool) -> None:
        self._directory = directory
        self._flags = (os.O_RDWR | os.O_CREAT) if is_writable else os.O_RDONLY
        self._flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe in its place must not hold us up

    @property
    def are_there(self) -> bool:
        """Whether there is a directory of locks."""
        return self._directory >= 0

    def close(self) -> None:
        """Let go of the directory."""
        if self._directory >= 0:
            os.close(self._directory)
        self._directory = -1

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def shared_if_there(self, name: str) -> Generator[None]:
        """Hold one lock together with other readers, if anybody ever made it; after those who wait to be alone."""
        with self._through_entry(self.shared, name):
            yield

    @contextmanager
    def alone(self, name: str) -> Generator[None]:
        """Hold one lock that others share. Who comes to share it meanwhile waits: they may never all be gone."""
        with self._through_entry(self.held, name):
            yield

    @contextmanager
    def _through_entry(self, hold: Callable[[str], AbstractContextManager[None]], name: str) -> Generator[None]:
        """Hold a lock, and another one while waiting for it."""
        with ExitStack() as stack:
            with hold(f"{name}-entry"):
                stack.enter_context(hold(name))
            yield

    @contextmanager
    def shared(self, name: str) -> Generator[None]:
        """Hold one lock together with others, if anybody ever made it."""
        try:
            fd = None if self._directory < 0 else self._take(name, fcntl.LOCK_SH)
        except FileNotFoundError:
            fd = None
        try:
            yield
        finally:
            if fd is not None:
                self._release(fd)

    @contextmanager
    def all_held(self, names: Iterable[str]) -> Generator[None]:
        """Hold several locks; they are taken in one order everywhere, so that nobody waits in a circle."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(self.held(name))
            yield

    @contextmanager
    def held(self, name: str) -> Generator[None]:
        """Hold one lock, waiting for it."""
        fd = self._take(name, fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._release(fd)

    @contextmanager
    def held_if_free(self, name: str) -> Generator[bool]:
        """Hold one lock if nobody has it; tells whether."""
        try:
            fd = self._take(name, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            self._release(fd)

    def _take(self, name: str, operation: int) -> int:
        while True:
            fd = os.open(name, self._flags, 0o666, dir_fd=self._directory)
            try:
                self._note(fd, name, operation)
                fcntl.flock(fd, operation)
                if os.fstat(fd).st_nlink:  # else somebody removed the file, and others lock another one
                    return fd
            except OSError as error:
                self._release(fd)
                if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):
                    raise StoreUnavailable(
                        "this file system has no locks (flock): no store can be kept here"
                    ) from error
                raise
            except BaseException:
                self._release(fd)
                raise
            self._release(fd)

    @staticmethod
    def _note(fd: int, name: str, operation: int) -> None:
        """Take note of an open lock file; refuse one that this thread holds under another name, and would wait for."""
        status = os.fstat(fd)
        holding = threading.get_ident(), status.st_dev, status.st_ino
        is_held = operation == fcntl.LOCK_EX and status.st_nlink > 1 and holding in _held.values()
        _held[fd] = holding
        if is_held:
            raise StoreUnavailable(f"the lock {name} is one file with another lock: remove both, nobody needs them")

    @staticmethod
    def _release(fd: int) -> None:
        _held.pop(fd, None)
        fcntl.flock(fd, fcntl.LOCK_UN)  # not only close: a child forked meanwhile may have inherited it
        os.close(fd)
