"""A store in a contest: imported, opened, asked; what it cannot do is noted, and keeps nobody else from going on."""

from __future__ import annotations

import importlib
import inspect
import re
import sqlite3
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, cast

from benchmarks.peers.figures import Figures
from benchmarks.peers.peer import FillingPeer, Peer, Reply, T

USER_TEXT = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
AGENT_TEXT = ("Sphinx of black quartz, judge my vow. " * 6)[:200]
TEXTS = USER_TEXT, AGENT_TEXT

Tell = Callable[[str], None]
"""Is told what is being done now."""


class Entry:
    """A store, and what was measured of it."""

    def __init__(self, peer: Peer, figures: Figures) -> None:
        self.peer = peer
        self.figures = figures

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.peer.append)

    def failed(self, work: str, error: BaseException) -> None:
        self.figures.errors[work] = reason(error)

    async def attempt(self, work: str, action: Callable[[], Reply[T]]) -> T | None:
        """What the action gives, or None with the reason noted."""
        try:
            return await replied(action())
        except Exception as error:  # noqa: BLE001 - the table shows it
            self.failed(work, error)
            return None

    async def is_open(self, fresh: Callable[[], Any]) -> bool:
        """Open it in a fresh place and use it once; False: the reason is noted."""
        if self.figures.errors:
            return False

        async def open_and_use() -> str:
            await replied(self.peer.open(fresh()))
            await replied(self.peer.append("first", *TEXTS))
            return await replied(self.peer.durability())

        self.figures.durability = await self.attempt("open", open_and_use) or ""
        return not self.figures.errors

    async def fill(self, sessions: list[str], exchanges: int) -> None:
        """Make sessions of that length, in the quickest way the store has."""
        for session in sessions:
            if hasattr(self.peer, "fill"):
                await replied(cast(FillingPeer, self.peer).fill(session, exchanges, *TEXTS))
                continue
            for _ in range(exchanges):
                await replied(self.peer.append(session, *TEXTS))


def made(module: str, names: tuple[str, ...]) -> Iterator[Entry]:
    """The stores of a module. If it cannot be imported, each has the reason."""
    try:
        loaded = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - whatever keeps a peer from being imported is its row's reason
        for name in names:
            absent = Entry(cast(Peer, None), Figures(name))
            absent.failed("import", error)
            yield absent
        return
    for name in names:
        peer: Peer = getattr(loaded, name)()
        entry = Entry(peer, Figures(peer.name, _version(peer.package), used=peer.used))
        entry.figures.face = "async" if entry.is_async else "plain"
        yield entry


def _version(package: str) -> str:
    try:
        return version(package) if package else sqlite3.sqlite_version
    except PackageNotFoundError:
        return "?"


async def replied(reply: Reply[T]) -> T:
    """What a store returned, awaited if it is asynchronous."""
    return await reply if inspect.isawaitable(reply) else cast(T, reply)


def reason(error: BaseException) -> str:
    """An error in a line, without this machine's directories."""
    message = re.sub(r"/\S*/", "", str(error).partition("[SQL")[0])
    return f"{type(error).__name__}: {' '.join(message.split())}"[:120]
