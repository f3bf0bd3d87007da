"""Laying out a state as real files; for the files engine, with caches that are lost, damaged or out of date."""

from __future__ import annotations

import logging
import os
import random
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from soak.power.disk import Tree

OWN: Final = ".statestore"
CACHES: Final = {"index.db": "files", "changes.db": "sessions"}
"""SQLite files that only ever spare work, and the table of each that knows files by their inodes."""
_OURS: Final = ("tmp", "locks", "journal", *CACHES)

Visible = dict[str, bytes]
"""The files that hold data, by path."""
Cache = dict[str, bytes]
"""The caches as they were at some moment, by name."""


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory for states to be opened in: in memory if the machine has such a place, which spares the disk."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(
        prefix="statestore-power-", dir=memory if os.access(memory, os.W_OK) else None
    ) as place:
        yield Path(place)


@contextmanager
def quiet() -> Iterator[None]:
    """While this lasts, the store does not say that a cache was damaged."""
    log = logging.getLogger("statestore")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def is_cache(name: str) -> bool:
    """Whether a file is one of the caches, or lies beside one."""
    return name.startswith(tuple(CACHES))


def holds_data(path: str) -> bool:
    """Whether a path of a store is that of a file that holds data."""
    own, _, name = path.partition("/")
    return own != OWN or ("/" in name and name.split("/", 1)[0] not in _OURS)


def visible(root: Path) -> Visible:
    """What lies in a store's directory: its own corner aside, but for what lies in the trash and aside."""
    found: Visible = {}
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            where = os.path.relpath(path, root)
            if holds_data(where):
                found[where] = Path(path).read_bytes()
    return found


def caches_in(root: Path) -> Cache:
    """The caches as they are now, at rest."""
    own = root / OWN
    return {name: (own / name).read_bytes() for name in CACHES if (own / name).is_file()}


def lay_out(tree: Tree, place: Path) -> dict[int, int]:
    """Make real files of a state; how the inodes that were recorded are numbered now."""
    inodes: dict[int, int] = {}
    for path, (node, content) in sorted(tree.items()):
        where = f"{place}/{path}"
        if content is None:
            os.mkdir(where)
            continue
        fd = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            os.write(fd, content.body)
            if content.mtime_ns:
                os.utime(fd, ns=(content.mtime_ns, content.mtime_ns))
            inodes[node.inode] = os.fstat(fd).st_ino
        finally:
            os.close(fd)
    return inodes


def lay_out_files(files: Visible, root: Path) -> None:
    """Make real files of data alone."""
    for path, body in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(body)


def lay_out_caches(cache: Cache, root: Path, inodes: Mapping[int, int], chance: random.Random) -> None:
    """Put caches beside a state: of another moment, damaged, or none."""
    own = root / OWN
    if not own.is_dir():
        return
    for name, body in cache.items():
        match chance.randrange(8):
            case 0:
                continue
            case 1:
                (own / name).write_bytes(chance.randbytes(3000))
            case 2:
                (own / name).write_bytes(body[: len(body) // 2])
            case _:
                (own / name).write_bytes(body)
                _renumber(own / name, CACHES[name], inodes)


def _renumber(path: Path, table: str, inodes: Mapping[int, int]) -> None:
    """Let a cache know the files that it knew: they were laid out anew, and have other inodes."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for row, text in connection.execute(f"SELECT rowid, entry FROM {table}").fetchall():
            entry = msgspec.json.decode(text)
            entry[3] = inodes.get(entry[3], entry[3])
            changed = (msgspec.json.encode(entry).decode(), row)
            connection.execute(f"UPDATE {table} SET entry = ? WHERE rowid = ?", changed)
