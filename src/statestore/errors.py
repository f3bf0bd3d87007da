"""Every error that statestore raises on purpose.

    StateStoreError
    ├── InvalidName            a category, name or id that breaks the naming rule      (ValueError)
    │   └── NameTaken          two names that this file system cannot tell apart
    ├── InvalidValue           a value that could not be read back everywhere          (ValueError)
    │   └── InvalidCursor      a cursor that this store did not give out
    │       └── CursorExpired  a cursor of a watch, from before what the store still remembers
    ├── SessionNotFound        the session is not there (any more)                     (LookupError)
    ├── WrongUser              the session belongs to somebody else                    (PermissionError)
    ├── SessionConflict        a rewrite of a session that changed meanwhile
    ├── DocumentConflict       a document is not at the version that was asked for
    ├── CorruptData            stored bytes that cannot be understood
    │   ├── CorruptSession
    │   └── CorruptDocument
    ├── CopyRefused            the target of a copy holds something else               (in ``copying``)
    ├── CopyIncomplete         a copy could not read, hold or verify everything        (in ``copying``)
    ├── NotAnExport            what should be imported is no export, or not all of it  (in ``exchange``)
    ├── FrameworkUnavailable   an adapter's framework is not there, or too old or new  (in ``adapters``)
    ├── NotSupported           the engine does not offer this
    ├── ReadOnlyStore          a write to a store that was opened for reading
    ├── StoreClosed            used after ``close``, or in a process that did not open it
    └── StoreUnavailable       the storage itself failed: disk full, no permission, no connection
        └── StoreNotFound      there is no store, and this way of opening it makes none

Where another library or the system failed first, its error is the ``__cause__``.
"""

from __future__ import annotations


class StateStoreError(Exception):
    """Base of everything below: catch this to catch them all."""


class InvalidName(StateStoreError, ValueError):
    """A category, document name or session id breaks the naming rule; the message says which rule."""


class NameTaken(InvalidName):
    """The file system folds this name onto one that exists, so both would share one file."""


class InvalidValue(StateStoreError, ValueError):
    """A value is not JSON, or is JSON that some engine could not give back unchanged."""


class InvalidCursor(InvalidValue):
    """A cursor is not one that this store gave out."""


class CursorExpired(InvalidCursor):
    """A watch cannot go on from this cursor: changes since then are forgotten. Load anew, and watch from now on."""


class SessionNotFound(StateStoreError, LookupError):
    """There is no session with this id, or it was deleted since it was loaded."""


class WrongUser(StateStoreError, PermissionError):
    """The session belongs to another user."""


class SessionConflict(StateStoreError):
    """The session changed since it was loaded, or one with its id exists already; nothing was written."""


class DocumentConflict(StateStoreError):
    """The document is not at the version the caller named; nothing was written."""


class CorruptData(StateStoreError):
    """What is stored cannot be understood; the message names the place and the reason."""


class CorruptSession(CorruptData):
    """A stored session cannot be understood. It is left as it is; ``check()`` lists it."""


class CorruptDocument(CorruptData):
    """A stored document cannot be understood. It is left as it is; ``check()`` lists it."""


class NotSupported(StateStoreError):
    """The engine under this store does not offer the operation."""


class ReadOnlyStore(StateStoreError):
    """The store was opened with ``read_only=True``."""


class StoreClosed(StateStoreError):
    """The store was closed, or belongs to the process that this one was forked from."""


class StoreUnavailable(StateStoreError):
    """The storage failed or cannot be used; ``__cause__`` holds the system's own error, if there was one."""


class StoreNotFound(StoreUnavailable):
    """There is no store at ``place``, and ``create=False`` or ``read_only=True`` makes none."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place

    @classmethod
    def at(cls, place: str, *, read_only: bool) -> StoreNotFound:
        """The error of opening a store that is not there."""
        option = "read_only=True" if read_only else "create=False"
        return cls(f"there is no store at {place}, and {option} makes none", place)
