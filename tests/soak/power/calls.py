"""What a store does to a directory through ``os``, recorded; and the death of the process at any of these calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from soak.power.disk import Disk
from soak.power.events import Content, Event, Link, Node, Sync, Touch, Unlink, Write

REFUSED: Final = (
    *("truncate", "symlink", "mkfifo", "sendfile", "copy_file_range", "splice", "posix_fallocate"),
    *("fdatasync", "sync", "pwritev", "replace", "rmdir", "remove", "removedirs", "renames", "ftruncate", "chmod"),
)
"""Calls that change a disk and that no engine makes: who begins to use one has to teach it to the recording."""


class Killed(BaseException):
    """The process dies here: whatever it still tries to do to the disk does not happen."""


class Recording:
    """The changes to everything below a directory, in order, from an initial state that is all on the disk."""

    def __init__(self, place: Path, ignores: Callable[[str], bool]) -> None:
        self.place = os.path.realpath(place)
        self.ignores = ignores
        self.root = Node(is_directory=True)
        self.initial = Disk()
        self.events: list[Event] = []
        self.fuse: int | None = None
        """After so many more calls the process is dead."""
        self._children: dict[Node, dict[str, Node]] = {}
        self._adopt(self.root, self.place)

    def _adopt(self, directory: Node, path: str) -> None:
        entries = self._children.setdefault(directory, {})
        with os.scandir(path) as scan:
            for entry in scan:
                if self.ignores(entry.name):
                    continue
                node = entries[entry.name] = Node(entry.is_dir(), entry.inode())
                if node.is_directory:
                    self._adopt(node, entry.path)
                else:
                    body = Path(entry.path).read_bytes()
                    self.initial.contents[node] = Content(body, entry.stat().st_mtime_ns)
        self.initial.names[directory] = dict(entries)

    # -- recording

    @contextmanager
    def running(self) -> Iterator[None]:
        """While this lasts, what is done is recorded."""
        recorded = {
            "open": self._open,
            "writev": self._writev,
            "write": self._write,
            "pwrite": self._pwrite,
            "fsync": self._fsync,
            "rename": self._rename,
            "link": self._link,
            "unlink": self._unlink,
            "mkdir": self._mkdir,
            "mknod": self._mknod,
            "utime": self._utime,
            "fchmod": self._fchmod,
        }
        originals = {name: getattr(os, name) for name in (*recorded, *REFUSED) if hasattr(os, name)}
        for name, original in originals.items():
            note = recorded.get(name)
            setattr(os, name, self._recorded(original, note) if note else self._refused(name, original))
        try:
            yield
        finally:
            for name, original in originals.items():
                setattr(os, name, original)

    def _recorded(self, original: Callable[..., Any], note: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            return note(original, *arguments, **options)

        return call

    def _refused(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            for argument in arguments:
                if isinstance(argument, (int, str, os.PathLike)) and self._inside(argument, options.get("dir_fd")):
                    raise AssertionError(f"os.{name} changes the disk, and the recording does not know it")
            return original(*arguments, **options)

        return call

    def _burn(self) -> None:
        """One more call that changes the disk, unless the process is dead by now."""
        if self.is_dead():
            raise Killed

    def is_dead(self) -> bool:
        """Whether the process is dead by now; if not, it makes one more call."""
        if self.fuse is None:
            return False
        self.fuse -= 1
        return self.fuse < 0

    # -- where things are

    def _inside(self, path: Any, directory: int | None = None) -> str | None:
        """A path below the place, from there; ``None`` if it is elsewhere, or of no interest."""
        if isinstance(path, int):
            found = os.readlink(f"/proc/self/fd/{path}")
        elif directory is not None:
            found = os.path.normpath(os.path.join(os.readlink(f"/proc/self/fd/{directory}"), path))
        else:
            found = os.path.abspath(path)
        if found == self.place:
            return ""
        if not found.startswith(f"{self.place}/") or self.ignores(os.path.basename(found)):
            return None
        return found[len(self.place) + 1 :]

    def node(self, path: str) -> Node | None:
        """What a path below the place leads to."""
        node: Node | None = self.root
        for part in filter(None, path.split("/")):
            node = self._children.get(node, {}).get(part) if node is not None else None
        return node

    def _known(self, path: str) -> Node:
        node = self.node(path)
        assert node is not None, f"{path} was made behind the recording's back"
        return node

    def _parent(self, path: str) -> tuple[Node, str]:
        parent, _, name = path.rpartition("/")
        return self._known(parent), name

    # -- what is done; others who watch, as SQLite's calls are, report here, too

    def made(self, path: str, *, is_directory: bool = False) -> Node:
        """Something new has a name."""
        node = Node(is_directory, os.lstat(f"{self.place}/{path}").st_ino)
        self._named(path, node)
        return node

    def _named(self, path: str, node: Node) -> Link:
        directory, name = self._parent(path)
        self._children.setdefault(directory, {})[name] = node
        self.events.append(link := Link(directory, name, node))
        return link

    def removed(self, path: str, after: Link | None = None) -> None:
        """A name is gone."""
        directory, name = self._parent(path)
        del self._children[directory][name]
        self.events.append(Unlink(directory, name, after))

    def _open(self, original: Any, path: Any, flags: int, *rest: Any, dir_fd: int | None = None, **options: Any) -> int:
        where = self._inside(path, dir_fd)
        if where is not None and flags & os.O_CREAT and self.node(where) is None:
            self._burn()
        assert where is None or not flags & (os.O_TRUNC | os.O_APPEND), "the recording knows no such opening"
        fd = original(path, flags, *rest, dir_fd=dir_fd, **options)
        if where is not None and self.node(where) is None:
            assert flags & os.O_CREAT, f"{where} was made behind the recording's back"
            self.made(where)
        return fd

    def _written(self, fd: int, offset: int, data: bytes) -> None:
        where = self._inside(fd)
        if where is not None:
            self.events.append(Write(self._known(where), offset, data))

    def _writev(self, original: Any, fd: int, parts: Any) -> int:
        self._burn()
        count = original(fd, parts)
        self._written(fd, os.lseek(fd, 0, os.SEEK_CUR) - count, b"".join(map(bytes, parts))[:count])
        return count

    def _write(self, original: Any, fd: int, data: Any) -> int:
        if self._inside(fd) is None:
            return original(fd, data)
        return self._writev(lambda _, parts: original(fd, parts[0]), fd, [data])

    def _pwrite(self, original: Any, fd: int, data: bytes, offset: int) -> int:
        if self._inside(fd) is not None:
            self._burn()
        count = original(fd, data, offset)
        self._written(fd, offset, bytes(data)[:count])
        return count

    def _fsync(self, original: Any, fd: int) -> None:
        self._burn()
        where = self._inside(fd)
        if where is None:
            original(fd)
        else:  # what is on the disk is what we say: the machine's own disk is left in peace
            self.events.append(Sync(self._known(where)))

    def _rename(self, original: Any, old: Any, new: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        self._burn()
        source, target = self._inside(old, src_dir_fd), self._inside(new, dst_dir_fd)
        original(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        assert source is not None, "a file came from outside"
        assert target is not None, "a file went outside"
        self.removed(source, self._named(target, self._known(source)))

    def _link(self, original: Any, old: Any, new: Any) -> None:
        self._burn()
        source, target = self._inside(old), self._inside(new)
        original(old, new)
        assert source is not None, "a file came from outside"
        assert target is not None, "a file went outside"
        self._named(target, self._known(source))

    def _unlink(self, original: Any, path: Any, *, dir_fd: int | None = None) -> None:
        where = self._inside(path, dir_fd)
        if where is not None:
            self._burn()
        original(path, dir_fd=dir_fd)
        if where is not None:
            self.removed(where)

    def _mkdir(self, original: Any, path: Any, *mode: Any, dir_fd: int | None = None) -> None:
        self._burn()
        where = self._inside(path, dir_fd)
        original(path, *mode, dir_fd=dir_fd)
        if where is not None:
            self.made(where, is_directory=True)

    def _mknod(self, original: Any, path: Any, *mode: Any, dir_fd: int | None = None) -> None:
        self._burn()
        where = self._inside(path, dir_fd)
        original(path, *mode, dir_fd=dir_fd)
        if where is not None:
            self.made(where)

    def _utime(self, original: Any, path: Any, *, ns: tuple[int, int], **options: Any) -> None:
        self._burn()
        where = self._inside(path)
        original(path, ns=ns, **options)
        if where is not None:
            self.events.append(Touch(self._known(where), ns[1]))

    def _fchmod(self, original: Any, fd: int, mode: int) -> None:
        self._burn()
        original(fd, mode)  # whom a file belongs to is not what is proven here

    # -- is it true?

    def check_against_the_directory(self) -> None:
        """Raise if what was recorded does not lead to what is really there: then a call was missed."""
        disk = replayed(self)
        found = {path: content and content.body for path, (_, content) in disk.everything(self.root).items()}
        really: dict[str, bytes | None] = {}
        for directory, names, files in os.walk(self.place):
            for name in (*names, *files):
                path = os.path.join(directory, name)
                if not self.ignores(name):
                    is_directory = os.path.isdir(path)
                    really[os.path.relpath(path, self.place)] = None if is_directory else Path(path).read_bytes()
        assert found == really, "something touched the disk in a way that was not recorded"


def replayed(recording: Recording) -> Disk:
    """The disk after everything that was recorded."""
    disk = fresh_disk(recording)
    for moment, event in enumerate(recording.events):
        disk.take(moment, event)
    return disk


def fresh_disk(recording: Recording) -> Disk:
    """The disk before anything was recorded."""
    names = {node: dict(entries) for node, entries in recording.initial.names.items()}
    return Disk(names, dict(recording.initial.contents))
