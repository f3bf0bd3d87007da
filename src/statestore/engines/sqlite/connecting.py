"""Opening the database file: that it is there and ours, and that every connection keeps its promises."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from contextlib import closing, suppress
from typing import Final, Literal, NamedTuple

from statestore.engines.flushing import flush, flush_directory
from statestore.engines.result_codes import is_lock_timeout
from statestore.engines.sqlite.failures import explained
from statestore.engines.sqlite.filesystems import is_on_network
from statestore.engines.sqlite.migrating import show_as_present
from statestore.engines.sqlite.pool import TORN, Identity, torn_files
from statestore.errors import StoreClosed, StoreNotFound, StoreUnavailable

APPLICATION_ID: Final = 0x73746F72
BACKUP_ID: Final = 0x73746F42
"""Mark a file as ours, in the place that SQLite has for it, or as a backup that nobody has written into yet."""

JOURNAL_MAGIC: Final = bytes.fromhex("d9d505f920a163d7")
"""How a rollback journal begins."""

SMALLEST: Final = 512
"""Bytes of the smallest database there is."""

TICK_NS: Final = 20_000_000
"""Two writes within one tick of the kernel's clock may look alike."""

MINIMUM: Final = (3, 37, 0)
"""The first SQLite with STRICT tables."""

WAL_KEPT: Final = 64 * 1024 * 1024
"""How large the file of the write-ahead log may stay after it was written back."""

Journal = Literal["auto", "wal", "rollback"]


class FileState(NamedTuple):
    """What tells one state of a file from another."""

    size: int
    changed_ns: int
    """When it was changed last. No program can set that back, as it can with when it was modified."""
    inode: int


def check_library(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> None:
    """Refuse an SQLite that is too old."""
    if version < MINIMUM:
        have, need = ".".join(map(str, version)), ".".join(map(str, MINIMUM))
        raise StoreUnavailable(f"this Python has SQLite {have}, and the sqlite engine needs {need} or newer")


class DatabaseFile:
    """One file with a database in it."""

    def __init__(self, path: str, *, timeout: float, journal: Journal, is_durable: bool, read_only: bool) -> None:
        self.path = os.path.realpath(path)
        self._link = path if os.path.islink(path) else None
        self.timeout = timeout
        self._journal = journal
        self._is_durable = is_durable
        self._read_only = read_only
        self.identity: Identity | None = None

    def prepare(self, *, create: bool) -> None:
        """Make sure that there is a file, ours alone if it is new; `StoreUnavailable` if there cannot be one."""
        check_library()
        with explained(self.path, self.timeout):
            try:
                status = os.stat(self.path)
            except FileNotFoundError:
                if not create or self._read_only:
                    raise StoreNotFound.at(self.path, read_only=self._read_only) from None
                status = self._create()
            if stat.S_ISDIR(status.st_mode):
                raise StoreUnavailable(f"{self.path} is a directory: file:{self.path} keeps a store in a directory")
            if not stat.S_ISREG(status.st_mode):
                raise StoreUnavailable(f"{self.path} is not a file")
            if not os.access(self.path, os.R_OK if self._read_only else os.R_OK | os.W_OK):
                hint = "" if self._read_only else ": read_only=True opens it for reading"
                raise StoreUnavailable(
                    f"{self.path} may not be {'read' if self._read_only else 'written'} by this user{hint}"
                )
            self.identity = status.st_dev, status.st_ino
            if self.identity in torn_files:
                raise StoreClosed(TORN)
            self._check_header()

    def _check_header(self) -> None:
        """Refuse what is not ours without a trace: merely looking could write back another program's log.

        SQLite itself has to look: were we to open and close the file, all locks that this process has on it would go.
        """
        size = os.stat(self.path).st_size
        if size == 0:
            return
        if size < SMALLEST:
            raise StoreUnavailable(f"{self.path} is not an SQLite database; it was left as it is")
        with closing(self._connection("mode=ro&immutable=1")) as connection:
            try:
                (mark,) = connection.execute("PRAGMA application_id").fetchone()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB and self._was_empty():
                    return  # the power was cut at its very first page: SQLite makes it empty again
                if error.sqlite_errorcode != sqlite3.SQLITE_CORRUPT:
                    raise
                return  # written back by half, because somebody reads or died: only with its log it makes sense
        if mark == BACKUP_ID:
            self._check_is_alone()
        elif mark != APPLICATION_ID:
            raise self._foreign()

    def _check_is_alone(self) -> None:
        """Refuse a backup that was put in the place of a file whose log is still there: SQLite would apply that."""
        if self.log_size():
            raise StoreUnavailable(
                f"{self.path} is a backup, and {self.path}-wal is the log of the file that was in its place before: "
                f"remove that, and {self.path}-shm, while nobody uses the store; nothing was touched"
            )

    def _was_empty(self) -> bool:
        """Whether there was nothing in the file before a transaction that did not come to its end."""
        try:
            journal = os.open(f"{self.path}-journal", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False  # there is none, or it is no file
        try:
            header = os.read(journal, 20)
        except OSError:
            return False
        finally:
            os.close(journal)
        return header.startswith(JOURNAL_MAGIC) and header[16:] == bytes(4)  # where the number of pages is

    def _foreign(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.path} is a database of another program; it was left as it is")

    def _create(self) -> os.stat_result:
        directory = os.path.dirname(self.path)
        if self._link is None:
            _make_directories(directory)
        elif not os.path.isdir(directory):
            raise StoreUnavailable(f"{self._link} is a link to {self.path}, and there is no such directory")
        try:
            os.mknod(self.path, stat.S_IFREG | 0o600)  # not opened: closing it would drop the locks of another thread
        except FileExistsError:
            pass  # somebody else made it
        except PermissionError:  # there are systems on which only root may
            self._link_new_file()
        flush_directory(directory)
        return os.stat(self.path)

    def _link_new_file(self) -> None:
        """Make the file under another name. Whoever dies over it leaves that name behind."""
        new = f"{self.path}-{os.urandom(6).hex()}"
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            os.link(new, self.path)
        except FileExistsError:
            pass  # somebody else made it
        finally:
            os.unlink(new)

    def check_is_there(self) -> None:
        """Raise `StoreUnavailable` if the file was deleted or replaced since it was opened."""
        try:
            status = os.stat(self.path)
            identity = status.st_dev, status.st_ino
        except PermissionError as error:
            raise StoreUnavailable(
                f"{self.path} cannot be reached any more ({error.strerror}): give this user the permission back"
            ) from error
        except OSError as error:
            raise StoreUnavailable(
                f"{self.path} is gone while the store is open ({error.strerror}): put the file back, "
                "or open the store anew"
            ) from error
        if identity != self.identity:
            raise StoreUnavailable(
                f"{self.path} was replaced by another file while the store is open: put the old one back, "
                "or open the store anew"
            )

    def state_at_rest(self) -> FileState | None:
        """What tells one state of the file from another, if nobody is writing it; ``None`` if somebody is."""
        age = time.time_ns() - os.stat(self.path).st_ctime_ns
        if 0 <= age < TICK_NS:
            time.sleep((TICK_NS - age) / 1e9)  # another write could still get the same time
        if os.path.exists(f"{self.path}-wal") or os.path.exists(f"{self.path}-journal"):
            return None
        status = os.stat(self.path)
        return FileState(status.st_size, status.st_ctime_ns, status.st_ino)

    def size(self) -> int:
        """How much room the file and its log take."""
        return os.stat(self.path).st_size + self.log_size()

    def log_size(self) -> int:
        """How large the write-ahead log is, 0 if there is none."""
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    def flush_what_is_there(self) -> None:
        """Have all that was committed survive a power cut: whoever committed it may have died before that."""
        if not self._is_durable:
            return
        with suppress(FileNotFoundError):
            fd = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)  # no locks of SQLite's are on this file
            try:
                flush(fd)
            finally:
                os.close(fd)
        flush_directory(os.path.dirname(self.path))

    def connect(self, *, at_rest: bool = False) -> sqlite3.Connection:
        """A new connection, with every setting that our promises rest on.

        ``at_rest`` is for a file that nobody is writing: SQLite takes no locks then, and makes no files beside it.
        """
        self.check_is_there()  # with another file in its place, SQLite would apply our log to that
        connection = self._connection("mode=ro" if self._read_only else "mode=rw", "immutable=1" if at_rest else "")
        try:
            self.check_is_there()  # nothing was read yet, so nothing is lost by closing
            execute = connection.execute
            # EXTRA is FULL, and more with a rollback journal: without it, a journal that is gone may come back.
            execute(f"PRAGMA synchronous={'EXTRA' if self._is_durable else 'NORMAL'}")
            execute("PRAGMA wal_autocheckpoint=0")  # see upkeep.py
            execute(f"PRAGMA journal_size_limit={WAL_KEPT}")
            execute("PRAGMA trusted_schema=OFF")
            execute("PRAGMA cell_size_check=ON")
            if sys.platform == "darwin":
                execute("PRAGMA fullfsync=ON")
                execute("PRAGMA checkpoint_fullfsync=ON")
            if self._read_only:
                execute("PRAGMA temp_store=MEMORY")  # before there are any: it drops temporary tables and views
                show_as_present(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connection(self, *options: str) -> sqlite3.Connection:
        escaped = self.path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return sqlite3.connect(
            f"file://{escaped}?{'&'.join(filter(None, options))}",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )

    def mark_as_ours(self, connection: sqlite3.Connection) -> None:
        """Write our mark into a new file, or into a backup, before anything else. Nobody else may be doing it."""
        (mark,) = connection.execute("PRAGMA application_id").fetchone()
        if mark == APPLICATION_ID:
            return
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if pages and mark != BACKUP_ID:
            raise self._foreign()
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")

    def set_journal(self, connection: sqlite3.Connection) -> None:
        """Put the database into the journal mode that suits where it lies. Nobody else may be doing it."""
        use_wal = self._journal == "wal" or (self._journal == "auto" and not is_on_network(self.path))
        wanted = "wal" if use_wal else "delete"
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if mode != wanted:
            try:
                (mode,) = connection.execute(f"PRAGMA journal_mode={wanted}").fetchone()
            except sqlite3.OperationalError as error:
                if not is_lock_timeout(error):
                    raise
                raise StoreUnavailable(
                    f"{self.path} has the journal mode {mode.upper()}, and cannot be given the mode {wanted.upper()} "
                    "while others have it open: open it as they do, or when they have closed it"
                ) from error
        if mode != wanted:
            raise StoreUnavailable(
                f"{self.path} cannot use the journal mode {wanted.upper()} here (it stays {mode.upper()}): "
                f"sqlite:{self.path}?journal=rollback works on any file system"
            )


def _make_directories(path: str) -> None:
    """Make a directory and what is missing above it, private to the user, and have them survive a power cut."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    _make_directories(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    flush_directory(parent)
