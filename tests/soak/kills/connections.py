"""The connections of a process to servers: what it sent before it died may still be done, until they are closed."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from children import PATIENCE

Connection = tuple[int, int]
"""The client's port, and the server's: clients of several servers may have one port."""
_TIME_WAIT = "06"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class _Line(NamedTuple):
    """One end of a connection, as the system lists it."""

    local: int
    remote: int
    state: str
    inode: str


def connections_of(pid: int) -> set[Connection]:
    """A process's connections, but for those that it has from us. It had better stand still."""
    inodes = _sockets_of(pid) - _sockets_of(os.getpid())
    return {(line.local, line.remote) for line in _lines() if line.inode in inodes}


def _sockets_of(pid: int) -> set[str]:
    sockets: set[str] = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            sockets.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    return sockets


def wait_until_closed(connections: Collection[Connection]) -> None:
    """Wait until no server holds its end of one of these connections any more."""
    deadline = time.monotonic() + PATIENCE
    while any((line.remote, line.local) in connections and line.state != _TIME_WAIT for line in _lines()):
        assert time.monotonic() < deadline, "a server does not notice that its client is gone"
        time.sleep(0.001)


def _lines() -> Iterator[_Line]:
    for table in _TABLES:
        if not table.exists():
            continue
        for line in table.read_text().splitlines()[1:]:
            _, local, remote, state, _, _, _, _, _, inode, *_ = line.split()
            yield _Line(int(local.rpartition(":")[2], 16), int(remote.rpartition(":")[2], 16), state, inode)
