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
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from io import FileIO
from typing import Final

from statestore.errors import StoreUnavailable

STRIPES: Final = 64
ALL_STRIPES: Final = [f"{number:02x}" for number in range(STRIPES)]
BATCHES: Final = "batches"
PREPARING: Final = "preparing"

_held: dict[FileIO, tuple[int, int, int]] = {}
"""The lock files that are open, each with its thread and what tells it from other files."""


def _close_inherited() -> None:
    """After a fork, in the child: close the parent's locks, which does not release them."""
    for file in _held:
        file.close()
    _held.clear()


os.register_at_fork(after_in_child=_close_inherited)


def stripe_of(item: Iterable[str]) -> str:
    """The name of the lock that guards an item."""
    return f"{zlib.crc32('/'.join(item).encode('utf-8', 'surrogatepass')) % STRIPES:02x}"


class NoneKept:
    """A block after which its thread holds no lock that it took inside.

    Ctrl-C may come while a lock is let go, before it is. Then it is let go here. So the block must not be a part of a
    generator: one that is interrupted ends when it is collected, which may be in the midst of another call.
    """

    def __enter__(self) -> None:
        self._before = _held_here()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        for file in _held_here() - self._before:
            _release(file)


def _held_here() -> set[FileIO]:
    """The lock files that this thread has open."""
    thread = threading.get_ident()
    return {file for file, holding in _held.copy().items() if holding[0] == thread}


def _release(file: FileIO) -> None:
    """Let go of a lock, or of what is left to let go of."""
    if not file.closed:
        with suppress(OSError):  # where there are no locks, there is none to let go of
            fcntl.flock(file, fcntl.LOCK_UN)  # not only close: a child forked meanwhile may have inherited it
        file.close()
    _held.pop(file, None)


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
        directory, self._directory = self._directory, -1  # first: by a second time, it may be another file's number
        if directory >= 0:
            os.close(directory)

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def shared_in_turn(self, name: str) -> Generator[None]:
        """Share one lock, if anybody ever made it. Who waits to hold it alone goes first."""
        with self._through_entry(self.shared, name):
            yield

    @contextmanager
    def alone(self, name: str) -> Generator[None]:
        """Hold one lock that others share in turn. Who comes meanwhile waits: they may never all be gone."""
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
        """Share one lock, if anybody ever made it. Who waits to hold it alone is not let go first."""
        try:
            file = None if self._directory < 0 else self._take(name, fcntl.LOCK_SH)
        except FileNotFoundError:
            file = None
        try:
            yield
        finally:
            if file is not None:
                _release(file)

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
        file = self._take(name, fcntl.LOCK_EX)
        try:
            yield
        finally:
            _release(file)

    @contextmanager
    def held_if_free(self, name: str) -> Generator[bool]:
        """Hold one lock if nobody has it; tells whether."""
        try:
            file = self._take(name, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            _release(file)

    def _take(self, name: str, operation: int) -> FileIO:
        while True:
            file = self._opened(name)
            try:
                self._note(file, name, operation)
                fcntl.flock(file, operation)
                if os.fstat(file.fileno()).st_nlink:  # else somebody removed the file, and others lock another one
                    return file
            except OSError as error:
                _release(file)
                if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS):
                    raise StoreUnavailable(
                        "this file system has no locks (flock): no store can be kept here"
                    ) from error
                raise
            except BaseException:
                _release(file)
                raise
            _release(file)

    def _opened(self, name: str) -> FileIO:
        fd = os.open(name, self._flags, 0o666, dir_fd=self._directory)
        try:
            return FileIO(fd)
        except OSError:  # it is a directory
            os.close(fd)
            raise

    @staticmethod
    def _note(file: FileIO, name: str, operation: int) -> None:
        """Take note of an open lock file; refuse one that this thread holds under another name, and would wait for."""
        status = os.fstat(file.fileno())
        holding = threading.get_ident(), status.st_dev, status.st_ino
        is_held = operation == fcntl.LOCK_EX and status.st_nlink > 1 and holding in _held.values()
        _held[file] = holding
        if is_held:
            raise StoreUnavailable(f"the lock {name} is one file with another lock: remove both, nobody needs them")
