"""The store's directory: reading, and writing so that it survives a power cut. Nothing leads out of it.

Every path is walked from the root by open directories, and no link is followed on the way, so that swapping a
file or a directory for a link cannot make us read or write elsewhere.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
import unicodedata
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

from statestore.engines.files.identity import Expected, Identity
from statestore.engines.flushing import flush, flush_directory
from statestore.errors import NameTaken, StateStoreError, StoreNotFound, StoreUnavailable
from statestore.seedform.pieces import Pieces

OWN: Final = ".statestore"
TEMPORARY: Final = "tmp"
LOCKS: Final = "locks"

_LOST: Final = "lost+found"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PROBE: Final = "Names-\u00c9"
"""An empty file in ``.statestore``: who finds it under another spelling is on a file system that folds names."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class NotAFile(StateStoreError):
    """Something stands where a file belongs: a directory, a link, a device."""


class ChangedMeanwhile(StateStoreError):
    """Another program replaced a file between our read and our write."""


class Directory:
    """The root of a store, kept open."""

    def __init__(self, path: str, *, is_durable: bool) -> None:
        self.path = path
        self._is_durable = is_durable
        self._root = -1
        self._own = -1
        self._temporary = -1
        self._lasting: set[tuple[int, int]] = set()
        """Directories, by device and inode, that are known to keep their names."""
        self._owed: set[str] = set()
        """Categories with a change that was interrupted, so that it may be there and not be on the disk."""
        self.folds_names = False
        """Whether the file system takes names for one that differ in case or in their Unicode form."""
        self.keeps_nanoseconds = True
        """Whether the file system keeps a file's time as it was set, to the nanosecond."""

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
                    self.flush_directory(directory)
            self._owed.discard(category)

    # -- opening ---------------------------------------------------------------------------------------------

    def open(self, *, create: bool, read_only: bool) -> None:
        """Open the root; create it, and the store's own corner of it, if that is wanted."""
        try:
            if not read_only:
                self._make_root(self.path, create=create)
            self._root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, RecursionError) as error:
            if isinstance(error, FileNotFoundError) and (read_only or not create):
                raise StoreNotFound.at(self.path, read_only=read_only) from error
            raise StoreUnavailable(f"{self.path[:200]} cannot be used as a store: {error}") from error
        if read_only:
            try:
                self.find_own()
            except StoreUnavailable:
                self.close()
                raise
            return
        self._lasting.add(_identity(self._root))
        try:
            self._own = self._made(OWN, self._root)
            self._temporary = self._made(TEMPORARY, self._own)
            self.folds_names = self._does_fold_names()
        except OSError as error:
            self.close()
            raise StoreUnavailable(
                f"{self.path} cannot be written: {error.strerror}; open it with read_only=True to read it"
            ) from error

    def find_own(self) -> None:
        """Open the store's own corner, if there is one by now."""
        try:
            if self._own < 0:
                self._own = os.open(OWN, _DIRECTORY, dir_fd=self._root)
            if self._temporary < 0:
                self._temporary = os.open(TEMPORARY, _DIRECTORY, dir_fd=self._own)
        except FileNotFoundError:
            return  # nobody but the Rust program ever wrote here
        except OSError as error:
            raise StoreUnavailable(f"{self.path}/{OWN} is not what it should be: {error.strerror}") from error

    def close(self) -> None:
        """Let go of it."""
        for fd in (self._root, self._own, self._temporary):
            if fd >= 0:
                os.close(fd)
        self._root = self._own = self._temporary = -1

    def __del__(self) -> None:
        self.close()

    @property
    def own(self) -> int:
        """The directory ``.statestore``, open; -1 if a store that is only read has none."""
        return self._own

    def _made(self, name: str, parent: int) -> int:
        """A directory below an open one, created if need be, open."""
        try:
            fd = os.open(name, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=parent)
            self.flush_directory(parent)
            return os.open(name, _DIRECTORY, dir_fd=parent)
        try:
            self._flush_way_to(fd)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _does_fold_names(self) -> bool:
        """Whether a file that is there can be found under another spelling of its name."""
        probe = os.open(_PROBE, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666, dir_fd=self._own)
        os.close(probe)
        others = (_PROBE.lower(), unicodedata.normalize("NFD", _PROBE))
        return any(self.stat(self._own, name) is not None for name in others)

    def _make_root(self, path: str, *, create: bool) -> None:
        """Create the root, private to its user, and whatever directories lead to it, if that is wanted.

        What is there may be so new that its name is not on the disk yet: whoever made it may have died.
        """
        parent = os.path.dirname(path)
        is_there = os.path.isdir(path)
        if not is_there:
            if not create:
                return
            self._make_root(parent, create=True)
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
        if self._is_durable:
            try:
                flush_directory(parent)
            except OSError:
                if not is_there:
                    raise  # else it is a place that is not ours to flush, where others made the directory for us

    def own_directory(self, name: str, *, create: bool) -> int:
        """A directory inside ``.statestore``, open; -1 if there is none and none is to be made."""
        if create:
            return self._made(name, self._own)
        try:
            return -1 if self._own < 0 else os.open(name, _DIRECTORY, dir_fd=self._own)
        except FileNotFoundError:
            return -1

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
                if self._is_other_spelling(fd, part):
                    if create:
                        raise NameTaken(_taken(part))
                    return None
                below = self._made(part, fd) if create else os.open(part, _DIRECTORY, dir_fd=fd)
            except FileNotFoundError as error:
                if os.fstat(root).st_nlink == 0:
                    raise StoreUnavailable(f"{self.path} was removed while it was open as a store") from error
                if create:
                    raise StoreUnavailable(f"{self.path}/{category} was removed while it was being made") from error
                return None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    where = f"{self.path}/{category}"
                    raise StoreUnavailable(
                        f"{where} is a link or a file: a store's directories are directories, links are not followed"
                    ) from error
                raise StoreUnavailable(f"{self.path}/{category} cannot be opened: {error.strerror}") from error
            finally:
                if fd != root:
                    os.close(fd)
            fd = below
        return fd

    # -- reading ---------------------------------------------------------------------------------------------

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
            if self._is_other_spelling(directory, name):
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

    # -- writing ---------------------------------------------------------------------------------------------

    def prepare(self, stripe: str, body: Pieces, old: os.stat_result | None) -> tuple[str, os.stat_result]:
        """Write a temporary file, down to the disk; its name. Whoever holds the stripe's lock owns it."""
        name = f"{stripe}.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o666, dir_fd=self._temporary)
        try:
            try:
                _write_all(fd, body)
                # A time of our own, strictly later than the old one: a version must never come back.
                moment = time.time_ns()
                if old is not None:
                    moment = max(moment, old.st_mtime_ns + 1)
                    _keep_owner_and_mode(fd, old)
                os.utime(fd, ns=(moment, moment))
                if self._is_durable:
                    flush(fd)
                status = os.fstat(fd)
                if status.st_mtime_ns != moment:
                    self.keeps_nanoseconds = False
                return name, status
            finally:
                os.close(fd)
        except BaseException:
            self.discard(name)
            raise

    def discard(self, temporary: str) -> None:
        """Remove a temporary file that is not needed any more."""
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=self._temporary)

    def check_name_is_free(self, directory: int, name: str) -> None:
        """Raise `NameTaken` if the file system takes this new name for one that exists."""
        if self._is_other_spelling(directory, name):
            raise NameTaken(_taken(name))

    def _is_other_spelling(self, directory: int, name: str) -> bool:
        """Whether the file system finds something of this name that is really called otherwise."""
        if not self.folds_names or name == ".":
            return False
        return self.stat(directory, name) is not None and name not in os.listdir(directory)

    def put_in_place(self, temporary: str, directory: int, name: str) -> None:
        """Give a temporary file its real name, in one step. The directory must be flushed afterwards."""
        os.rename(temporary, name, src_dir_fd=self._temporary, dst_dir_fd=directory)

    def flush_directory(self, directory: int) -> None:
        """Make renames and removals in a directory last."""
        if self._is_durable:
            flush(directory)
            self._flush_way_to(directory)

    def flush_temporary_names(self) -> None:
        """Make the names of temporary files last: their bytes do."""
        self.flush_directory(self._temporary)

    def _flush_way_to(self, directory: int) -> None:
        """Make a directory itself last. Once for each: whoever made it may have died before that, or be about to."""
        identity = _identity(directory)
        if not self._is_durable or identity in self._lasting:
            return
        parent = os.open("..", _DIRECTORY, dir_fd=directory)
        try:
            if _identity(parent) != identity:  # else somebody moved it out of the store, and this is the end of the way
                flush(parent)
                self._flush_way_to(parent)
        finally:
            os.close(parent)
        self._lasting.add(identity)

    def temporary_files(self) -> list[str]:
        """The names of all temporary files."""
        return sorted(os.listdir(self._temporary)) if self._temporary >= 0 else []

    def has_temporary(self, name: str) -> bool:
        """Whether a temporary file is there."""
        return self.stat(self._temporary, name) is not None

    def check_writable(self, directory: int, where: str) -> None:
        """Raise `StoreUnavailable` if nothing can be put into a directory."""
        if not os.access(".", os.W_OK | os.X_OK, dir_fd=directory, effective_ids=True):
            raise StoreUnavailable(f"{self.path}/{where} cannot be written") from PermissionError(errno.EACCES, where)

    def check_within_reach(self, directory: int, where: str) -> None:
        """Raise `StoreUnavailable` if no rename leads from the temporary files into a directory."""
        is_within_reach = _identity(directory)[0] == _identity(self._temporary)[0]
        try:
            os.replace(".", ".", src_dir_fd=self._temporary, dst_dir_fd=directory)  # never done; the reason tells
        except OSError as error:
            is_within_reach = is_within_reach and error.errno != errno.EXDEV
        if not is_within_reach:
            raise StoreUnavailable(
                f"{self.path}/{where} is on another file system than the store, or mounted on its own: "
                "nothing can be put there in one step"
            )

    def is_kept_by_the_system(self, directory: int, name: str) -> bool:
        """Whether a directory is one that a file system has for itself: in the root of a volume there is one."""
        return name == _LOST and not os.access(name, os.R_OK | os.X_OK, dir_fd=directory, effective_ids=True)

    def stat_after_rename(self, directory: int, name: str, prepared: os.stat_result) -> os.stat_result:
        """What a stat says of a file now that it is in place; what it said before, if that is not our file any more."""
        status = self.stat(directory, name)
        return status if status is not None and Identity.of(status) == Identity.of(prepared) else prepared

    def stat(self, directory: int, name: str) -> os.stat_result | None:
        """What a stat says of a file; ``None`` if there is none."""
        try:
            return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None


def _identity(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino


def _taken(name: str) -> str:
    return f"{name!r} differs from an existing name only in a way that this file system does not see"


def _keep_owner_and_mode(fd: int, old: os.stat_result) -> None:
    """Have a file be whose the old one was, if the system lets us, and as readable: its user must not be shut out."""
    new = os.fstat(fd)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(fd, old.st_uid, old.st_gid)
    if stat.S_IMODE(new.st_mode) != stat.S_IMODE(old.st_mode):
        os.fchmod(fd, stat.S_IMODE(old.st_mode))


def _write_all(fd: int, body: Pieces) -> None:
    written = os.writev(fd, body.parts)
    while written < body.size:  # a short write: what is left of the parts
        written += os.writev(fd, body.after(written))


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
