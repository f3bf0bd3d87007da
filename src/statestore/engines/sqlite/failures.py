"""What SQLite says went wrong, as errors of ours: what happened, where, and what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from msgspec import MsgspecError

from statestore.engines.columns import SENSELESS, senseless
from statestore.engines.result_codes import code_of, fine_code_of
from statestore.errors import CorruptData, StateStoreError, StoreUnavailable

DAMAGED: Final = "go back to a backup, or save what can be read with `statestore export`"
"""What to do about a damaged file."""
_OF_A_DEAD_WRITER: Final = (sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY)
_AT_THE_END: Final = (sqlite3.SQLITE_IOERR_DELETE, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_UNLOCK)


@contextmanager
def explained(path: str, timeout: float) -> Generator[None]:
    """What SQLite or the system refuses becomes an error of ours, and so does a row that makes no sense."""
    try:
        yield
    except StateStoreError:
        raise
    except (sqlite3.Error, OSError, *SENSELESS) as error:
        if not is_of_storage(error):
            raise
        raise explanation(error, path, timeout) from error


def is_of_storage(error: BaseException) -> bool:
    """Whether an error comes of the storage, or of what it holds or was to hold. Others were raised by a program's own
    handler of signals, whatever was under way: they are the caller's, and nobody else is told of them.
    """
    if isinstance(error, OSError):
        return error.errno is not None  # a time-out of a program's own has none
    return isinstance(error, (sqlite3.Error, StateStoreError, MsgspecError, *SENSELESS, LookupError, MemoryError))


def explanation(error: Exception, path: str, timeout: float) -> StateStoreError:
    """The error that users are told."""
    if isinstance(error, OSError):
        place = error.filename if isinstance(error.filename, str) else path  # which may be a file beside it
        return StoreUnavailable(f"{place}: {error.strerror or error}")
    if isinstance(error, SENSELESS):
        return senseless(path, error)
    if fine_code_of(error) in _OF_A_DEAD_WRITER:
        return StoreUnavailable(
            f"{path} holds a transaction whose writer died: open it once for writing, which takes it back"
        )
    if may_have_happened(error):
        return StoreUnavailable(
            f"{path}: {error} at the end of a commit: look whether it is there before it is written again"
        )
    match code_of(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(
                f"{path} has been locked by another program for {timeout:g} s: try again when it is done, "
                f"or wait longer with sqlite:{path}?timeout=SECONDS"
            )
        case sqlite3.SQLITE_FULL:
            return StoreUnavailable(f"{path}: no space left, and nothing was written: make room and try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return StoreUnavailable(f"{path} cannot be written: it, or its directory, is read-only ({error})")
        case sqlite3.SQLITE_NOTADB:
            return StoreUnavailable(f"{path} is not an SQLite database, or is encrypted; it was left as it is")
        case sqlite3.SQLITE_CORRUPT:
            return CorruptData(f"{path} is damaged ({error}): {DAMAGED}")
        case sqlite3.SQLITE_CANTOPEN:
            return StoreUnavailable(
                f"{path} cannot be opened: is its directory there and writable, and are file handles left? ({error})"
            )
        case _:
            if is_about_text(error):
                return CorruptData(f"{path} holds a text that is not UTF-8 ({error}): check() tells where")
            return StoreUnavailable(f"{path}: {error}")


def is_about_text(error: Exception) -> bool:
    """Whether a text is not UTF-8. This is Python's own finding, without a code."""
    return "decode to UTF-8" in str(error)


def may_have_happened(error: Exception) -> bool:
    """Whether a commit failed at its very end, where its rollback journal was to go: nobody knows whether it did."""
    return fine_code_of(error) in _AT_THE_END
