"""What SQLite does to its files, recorded: its own way to the disk, with a few calls that pass by here first.

Python's ``sqlite3`` is linked with a library that lets a program put a "VFS" of its own in the place of the built-in
one. Ours is a copy of that, in which opening, writing, cutting, flushing and deleting tell the recording.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int, c_int64, c_void_p
from functools import cache
from typing import Any, Final

from soak.power.calls import Recording
from soak.power.events import Event, Node, Sync, Truncate, Write

_OK: Final = 0
_FAILED: Final = 10
"""What a call gives back to a process that is dead."""
_NAME: Final = b"recording"

_XClose = CFUNCTYPE(c_int, c_void_p)
_XWrite = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_XTruncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_XSync = CFUNCTYPE(c_int, c_void_p, c_int)
_XOpen = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, POINTER(c_int))  # it keeps the path: no copy will do
_XDelete = CFUNCTYPE(c_int, c_void_p, c_char_p, c_int)
_XSetCall = CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p)
_XGetCall = CFUNCTYPE(c_void_p, c_void_p, c_char_p)
_OpenDirectory = CFUNCTYPE(c_int, c_char_p, POINTER(c_int))


class _Methods(ctypes.Structure):
    """``sqlite3_io_methods``: what can be done to one open file."""

    _fields_ = (
        ("iVersion", c_int),
        ("xClose", _XClose),
        ("xRead", c_void_p),
        ("xWrite", _XWrite),
        ("xTruncate", _XTruncate),
        ("xSync", _XSync),
        ("others", c_void_p * 13),
    )


class _File(ctypes.Structure):
    """``sqlite3_file``: it begins with its methods."""

    _fields_ = (("methods", POINTER(_Methods)),)


class _Vfs(ctypes.Structure):
    """``sqlite3_vfs``, version 3."""

    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", _XOpen),
        ("xDelete", _XDelete),
        ("between", c_void_p * 11),
        ("xSetSystemCall", _XSetCall),
        ("xGetSystemCall", _XGetCall),
        ("xNextSystemCall", c_void_p),
    )


class _SqliteCalls:
    """Tells a recording what SQLite does below its place. There is one for good: connections may linger."""

    def __init__(self) -> None:
        self._recording: Recording | None = None
        self._nodes: dict[int, Node] = {}
        self._copies: dict[int, tuple[_Methods, _Methods]] = {}
        """Methods of the library and ours in their place, by the address of the first."""
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = POINTER(_Vfs)
        self._library = library
        self._original: _Vfs = library.sqlite3_vfs_find(None).contents
        self._vfs = _Vfs.from_buffer_copy(self._original)
        self._vfs.zName = _NAME
        self._vfs.pNext = None
        self._vfs.xOpen = _XOpen(self._open)
        self._vfs.xDelete = _XDelete(self._delete)
        self._flush_directory_call = _OpenDirectory(self._open_directory)

    @contextmanager
    def running(self, recording: Recording) -> Iterator[None]:
        """While this lasts, what is done to files that are opened is recorded."""
        self._recording = recording
        library, original = self._library, self._original
        address = original.xGetSystemCall(ctypes.addressof(original), b"openDirectory")
        self._real_open_directory = _OpenDirectory(address)
        own = ctypes.cast(self._flush_directory_call, c_void_p)
        assert original.xSetSystemCall(ctypes.addressof(original), b"openDirectory", own) == _OK
        assert library.sqlite3_vfs_register(ctypes.byref(self._vfs), 1) == _OK
        try:
            yield
        finally:
            self._recording = None
            self._nodes.clear()
            library.sqlite3_vfs_unregister(ctypes.byref(self._vfs))
            library.sqlite3_vfs_register(ctypes.byref(original), 1)
            original.xSetSystemCall(ctypes.addressof(original), b"openDirectory", c_void_p(address))

    def _inside(self, path: bytes) -> str | None:
        """A path below the place, from there, if it is one that matters."""
        found = os.fsdecode(path)
        if self._recording is None:
            return None
        start = f"{self._recording.place}/"
        if not found.startswith(start) or self._recording.ignores(os.path.basename(found)):
            return None
        return found[len(start) :]

    # -- of the whole

    def _open(self, _vfs: int, path: int | None, file: int, flags: int, out: Any) -> int:
        where = self._inside(ctypes.string_at(path)) if path else None
        code = self._original.xOpen(ctypes.addressof(self._vfs), path, file, flags, out)
        recording = self._recording
        if code == _OK and where is not None and recording is not None:
            self._nodes[file] = recording.node(where) or recording.made(where)
            self._pass_by(file)
        return code

    def _pass_by(self, file: int) -> None:
        """Let what is done to an open file pass by here."""
        opened = _File.from_address(file)
        address = ctypes.addressof(opened.methods.contents)
        if address not in self._copies:
            theirs = _Methods.from_address(address)
            ours = _Methods.from_buffer_copy(theirs)
            ours.xClose = _XClose(lambda file: self._close(theirs, file))
            ours.xWrite = _XWrite(lambda file, data, size, place: self._write(theirs, file, data, size, place))
            ours.xTruncate = _XTruncate(lambda file, size: self._truncate(theirs, file, size))
            ours.xSync = _XSync(lambda file, flags: self._sync(theirs, file, flags))
            self._copies[address] = theirs, ours
        opened.methods = ctypes.pointer(self._copies[address][1])

    def _delete(self, _vfs: int, path: bytes, is_to_last: int) -> int:
        where = self._inside(path)
        recording = self._recording
        if where is not None and recording is not None:
            if recording.is_dead():
                return _FAILED
            if recording.node(where) is not None and os.path.lexists(path):
                recording.removed(where)  # first: the directory is flushed by the call itself
        return self._original.xDelete(ctypes.addressof(self._vfs), path, is_to_last)

    def _open_directory(self, path: bytes, out: Any) -> int:
        """SQLite opens the directory of a file for one reason: to flush it."""
        where = self._inside(os.path.dirname(path) + b"/.")
        recording = self._recording
        node = recording.node(os.path.dirname(where)) if where is not None and recording is not None else None
        if node is not None and recording is not None and not recording.is_dead():
            recording.events.append(Sync(node))
        return self._real_open_directory(path, out)

    # -- of one file

    def _close(self, theirs: _Methods, file: int) -> int:
        self._nodes.pop(file, None)
        return theirs.xClose(file)

    def _happens(self, file: int, event: Callable[[Node], Event]) -> bool:
        """Record what is done to a file; ``False`` if whoever does it is dead."""
        node, recording = self._nodes.get(file), self._recording
        if node is None or recording is None:
            return True
        if recording.is_dead():
            return False
        recording.events.append(event(node))
        return True

    def _write(self, theirs: _Methods, file: int, data: int, size: int, place: int) -> int:
        body = ctypes.string_at(data, size)
        return (
            theirs.xWrite(file, data, size, place)
            if self._happens(file, lambda node: Write(node, place, body))
            else _FAILED
        )

    def _truncate(self, theirs: _Methods, file: int, size: int) -> int:
        return theirs.xTruncate(file, size) if self._happens(file, lambda node: Truncate(node, size)) else _FAILED

    def _sync(self, theirs: _Methods, file: int, flags: int) -> int:
        return theirs.xSync(file, flags) if self._happens(file, Sync) else _FAILED


@cache
def sqlite_calls() -> _SqliteCalls:
    """The calls of this process's SQLite."""
    return _SqliteCalls()


def can_record() -> bool:
    """Whether this Python's SQLite can be reached: some are built so that nobody can."""
    try:
        return bool(ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find)
    except (AttributeError, OSError):
        return False
