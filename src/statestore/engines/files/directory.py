"""The store's directory: its root, the categories in it, and the files in these. Nothing leads out of it.

Every path is walked from the root by open directories, and no link is followed on the way, so that swapping a
file or a directory for a link cannot make us read or write elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from statestore.engines.files.identity import Expected
from statestore.engines.files.lasting import DIRECTORY, Lasting
from statestore.engines.files.spelling import Spelling
from statestore.engines.files.temporary import TemporaryFiles
from statestore.errors import StateStoreError, StoreNotFound, StoreUnavailable
from statestore.seedform.pieces import Pieces

OWN: Final = ".statestore"
TEMPORARY: Final = "tmp"
LOCKS: Final = "locks"

_LOST: Final = "lost+found"
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class NotAFile(StateStoreError):
    """Something stands where a file belongs: a directory, a link, a device."""


class Directory:
    """The root of a store, kept open."""

    def __init__(self, path: str, *, is_durable: bool) -> None:
        self.path = path
        self.lasting = Lasting(is_durable=is_durable)
        self.temporary = TemporaryFiles(self.lasting, is_durable=is_durable)
        self.spelling = Spelling()
        self._root = -1
        self._own = -1
        self._owed: set[str] = set()
        """Categories with a change that was interrupted, so that it may be there and not be on the disk."""

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self, *, create: bool, read_only: bool) -> None:
        """Open the root; create it, and the store's own corner of it, if that is wanted."""
        try:
            if not read_only:
                self.lasting.make_root(self.path, create=create)
            self._root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, RecursionError) as error:
            if isinstance(error, FileNotFoundError) and (read_only or not create):
                raise StoreNotFound.at(self.path, read_only=read_only) from error
            hint = f"; sqlite:{self.path[:200]} opens an SQLite store" if os.path.isfile(self.path) else ""
            raise StoreUnavailable(f"{self.path[:200]} cannot be used as a store: {error}{hint}") from error
        if read_only:
            try:
                self.find_own()
            except StoreUnavailable:
                self.close()
                raise
            return
        self.lasting.end_at(self._root)
        try:
            self._own = self.lasting.made(OWN, self._root)
            self.temporary.open(self.lasting.made(TEMPORARY, self._own))
            self.spelling.find_out(self._own)
        except OSError as error:
            try:
                self.find_own()  # raises what would keep a reader out, too
            finally:
                self.close()
            raise StoreUnavailable(
                f"{self.path} cannot be written: {error.strerror}; open it with read_only=True to read it"
            ) from error

    def find_own(self) -> None:
        """Open the store's own corner, if there is one by now."""
        where = f"{self.path}/{OWN}"
        try:
            if self._own < 0:
                self._own = os.open(OWN, DIRECTORY, dir_fd=self._root)
            if not self.temporary.is_open:
                where = f"{where}/{TEMPORARY}"
                self.temporary.open(os.open(TEMPORARY, DIRECTORY, dir_fd=self._own))
        except FileNotFoundError:
            return  # nobody but the Rust program ever wrote here
        except OSError as error:
            raise _unopened(where, error) from error

    def close(self) -> None:
        """Let go of it."""
        self.temporary.close()
        fds = self._root, self._own
        self._root = self._own = -1  # first: by a second time, they may be other files' numbers
        for fd in fds:
            if fd >= 0:
                os.close(fd)

    def __del__(self) -> None:
        self.close()

    @property
    def own(self) -> int:
        """The directory ``.statestore``, open; -1 if a store that is only read has none."""
        return self._own

    def own_directory(self, name: str, *, create: bool) -> int:
        """A directory inside ``.statestore``, open; -1 if there is none and none is to be made."""
        if create:
            return self.lasting.made(name, self._own)
        try:
            return -1 if self._own < 0 else os.open(name, DIRECTORY, dir_fd=self._own)
        except FileNotFoundError:
            return -1

    # -- categories ------------------------------------------------------------------------------------------

    @contextmanager
    def category(self, category: str, *, create: bool = False) -> Generator[int | None]:
        """A category's directory, open for the block; ``None`` if there is none."""
        fd = self._walk(category, create=create)
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def _walk(self, category: str, *, create: bool) -> int | None:
        root = fd = self._root
        for part in category.split("/"):
            try:
                if create:
                    self.spelling.check_is_free(fd, part)
                elif self.spelling.is_another(fd, part):
                    return None
                below = self.lasting.made(part, fd) if create else os.open(part, DIRECTORY, dir_fd=fd)
            except FileNotFoundError as error:
                if os.fstat(root).st_nlink == 0:
                    raise StoreUnavailable(f"{self.path} was removed while it was open as a store") from error
                if create:
                    raise StoreUnavailable(f"{self.path}/{category} was removed while it was being made") from error
                return None
            except OSError as error:
                raise _unopened(f"{self.path}/{category}", error) from error
            finally:
                if fd != root:
                    os.close(fd)
            fd = below
        return fd

    @contextmanager
    def changing(self, category: str) -> Generator[None]:
        """Held while a category is changed and flushed. If that is interrupted, whoever reads next flushes first:
        what was seen there is then taken for stored.
        """
        try:
            yield
        except BaseException:
            self._owed.add(category)
            raise

    def flush_owed(self) -> None:
        """Flush what was interrupted."""
        for category in tuple(self._owed):
            with self.category(category) as directory:
                if directory is not None:
                    self.lasting.flush(directory)
            self._owed.discard(category)

    def put_in_place(self, temporary: str, directory: int, category: str, name: str) -> None:
        """Give a temporary file its real name in a category, which is open. It must be flushed afterwards."""
        try:
            self.temporary.put_in_place(temporary, directory, name)
        except OSError as error:
            if error.errno == errno.EXDEV:
                self.temporary.check_within_reach(directory, f"{self.path}/{category}")
            raise

    def check_writable(self, directory: int, where: str) -> None:
        """Raise `StoreUnavailable` if nothing can be put into a directory."""
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=directory, effective_ids=True):
            raise StoreUnavailable(f"{self.path}/{where} cannot be written") from PermissionError(errno.EACCES, where)

    def is_kept_by_the_system(self, directory: int, name: str) -> bool:
        """Whether a directory is one that a file system has for itself: in the root of a volume there is one."""
        return name == _LOST and not os.access(name, os.R_OK | os.X_OK, dir_fd=directory, effective_ids=True)

    # -- files -----------------------------------------------------------------------------------------------

    def read(
        self, directory: int, name: str, where: str, *, expected: Expected | None = None
    ) -> tuple[Pieces, os.stat_result] | None:
        """A file's bytes and what a stat says of it; ``None`` if there is none of exactly this name.

        Bytes that are as expected are the expected object itself: that saves the memory for a second one.
        """
        try:
            fd = os.open(name, _FILE, dir_fd=directory)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise NotAFile(f"{where} is a link; links inside a store are not followed") from error
            raise StoreUnavailable(f"{where} cannot be read: {error.strerror}") from error
        try:
            if self.spelling.is_another(directory, name):
                return None
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise NotAFile(f"{where} is a {_kind(status.st_mode)}, not a file")
            if expected is not None and expected.is_held_by(fd, status):
                return expected.body, status
            return Pieces.of(_read_all(fd, status.st_size)), status
        except OSError as error:
            raise StoreUnavailable(f"{where} cannot be read: {error.strerror}") from error
        finally:
            os.close(fd)


def _unopened(where: str, error: OSError) -> StoreUnavailable:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return StoreUnavailable(
            f"{where} is a link or a file: a store's directories are directories, links are not followed"
        )
    return StoreUnavailable(f"{where} cannot be opened: {error.strerror}")


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size + 1)
    if len(data) == size:
        return data
    pieces = [data]
    while piece := os.read(fd, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces)


def _kind(mode: int) -> str:
    names = {stat.S_IFDIR: "directory", stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFLNK: "link"}
    return names.get(stat.S_IFMT(mode), "device")
