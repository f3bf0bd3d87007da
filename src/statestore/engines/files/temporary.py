"""Temporary files: written down to the disk first, and then given their real names in one step."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import time
from contextlib import suppress

from statestore.engines.files.identity import Identity, status_of
from statestore.engines.files.lasting import Lasting
from statestore.engines.flushing import flush
from statestore.errors import StoreUnavailable
from statestore.seedform.pieces import Pieces


class TemporaryFiles:
    """The files in a directory of their own, on the file system of the store."""

    def __init__(self, lasting: Lasting, *, is_durable: bool) -> None:
        self._lasting = lasting
        self._is_durable = is_durable
        self._directory = -1
        self.keeps_nanoseconds = True
        """Whether the file system keeps a file's time as it was set, to the nanosecond."""

    def open(self, directory: int) -> None:
        """Keep them in this directory, which is open."""
        self._directory = directory

    @property
    def is_open(self) -> bool:
        """Whether there is a directory for them."""
        return self._directory >= 0

    def close(self) -> None:
        """Let go of the directory."""
        directory, self._directory = self._directory, -1  # first, as in `Directory.close`
        if directory >= 0:
            os.close(directory)

    def names(self) -> list[str]:
        """The names of all."""
        return sorted(os.listdir(self._directory)) if self._directory >= 0 else []

    def is_there(self, name: str) -> bool:
        """Whether there is one of this name."""
        return status_of(self._directory, name) is not None

    @staticmethod
    def name_for(owner: str) -> str:
        """A name that no other one has."""
        return f"{owner}.{secrets.token_hex(8)}"

    def prepare(self, owner: str, body: Pieces, old: os.stat_result | None) -> tuple[str, os.stat_result]:
        """Write one, down to the disk; its name. Whoever holds the lock of that name owns it."""
        name = self.name_for(owner)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o666, dir_fd=self._directory)
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

    def flush_names(self) -> None:
        """Make their names last: their bytes do."""
        self._lasting.flush(self._directory)

    def put_in_place(self, temporary: str, directory: int, name: str) -> None:
        """Give one its real name, in one step. The directory must be flushed afterwards."""
        os.rename(temporary, name, src_dir_fd=self._directory, dst_dir_fd=directory)

    def take_out(self, directory: int, name: str, temporary: str) -> None:
        """Make a file of a directory a temporary one, in one step; if no rename leads here from there, remove it.

        To free the room of a file takes a disk longer than all else, and can be done when nobody waits.
        """
        try:
            os.rename(name, temporary, src_dir_fd=directory, dst_dir_fd=self._directory)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            os.unlink(name, dir_fd=directory)

    def status_in_place(self, directory: int, name: str, prepared: os.stat_result) -> os.stat_result:
        """What a stat says of one that was put in place; what it said before, if that is not our file any more."""
        status = status_of(directory, name)
        return status if status is not None and Identity.of(status) == Identity.of(prepared) else prepared

    def discard(self, name: str) -> None:
        """Remove one that is not needed any more."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._directory)

    def check_within_reach(self, directory: int, where: str) -> None:
        """Raise `StoreUnavailable` if no rename leads from here into a directory."""
        is_within_reach = os.fstat(directory).st_dev == os.fstat(self._directory).st_dev
        try:
            os.replace(".", ".", src_dir_fd=self._directory, dst_dir_fd=directory)  # never done; the reason tells
        except OSError as error:
            is_within_reach = is_within_reach and error.errno != errno.EXDEV
        if not is_within_reach:
            raise StoreUnavailable(
                f"{where} is on another file system than the store, or mounted on its own: "
                "nothing can be put there in one step"
            )


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
