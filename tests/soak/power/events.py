"""What can happen to a disk: names, bytes and flushes, each about a node that keeps its identity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Node:
    """A file or a directory, whatever it is called."""

    is_directory: bool
    inode: int = 0
    """The number it had when it was recorded; caches know files by it."""


@dataclass(frozen=True, eq=False)
class Link:
    """A directory gets a name for a node."""

    directory: Node
    name: str
    node: Node


@dataclass(frozen=True, eq=False)
class Unlink:
    """A directory loses a name; if the node was moved, it got the other one before."""

    directory: Node
    name: str
    after: Link | None = None


@dataclass(frozen=True, eq=False)
class Write:
    """Bytes put into a file."""

    node: Node
    offset: int
    data: bytes


@dataclass(frozen=True, eq=False)
class Truncate:
    """A file gets another size."""

    node: Node
    size: int


@dataclass(frozen=True, eq=False)
class Touch:
    """A file gets another time."""

    node: Node
    mtime_ns: int


@dataclass(frozen=True, eq=False)
class Sync:
    """A file or a directory is flushed."""

    node: Node


Naming = Link | Unlink
Filling = Write | Truncate | Touch
Event = Naming | Filling | Sync


@dataclass(frozen=True)
class Content:
    """What is in a file, and the time it has."""

    body: bytes = b""
    mtime_ns: int = 0

    def after(self, change: Filling) -> Content:
        """What is in it after a change."""
        match change:
            case Write(_, offset, data):
                old = self.body.ljust(offset, b"\0")
                return Content(old[:offset] + data + old[offset + len(data) :], self.mtime_ns)
            case Truncate(_, size):
                return Content(self.body[:size].ljust(size, b"\0"), self.mtime_ns)
            case Touch(_, mtime_ns):
                return Content(self.body, mtime_ns)
