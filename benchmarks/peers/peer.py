"""What every store has to do here, and a few words for what is measured with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeVar

T = TypeVar("T")
Reply = T | Awaitable[T]
"""What a store returns: at once if it is a plain one, to be awaited if it is asynchronous."""


class Peer(Protocol):
    """A store under measurement. It is asynchronous if its ``append`` is."""

    name: ClassVar[str]
    package: ClassVar[str]
    """The distribution whose version is told; empty for the standard library."""
    used: ClassVar[str]
    """How it was used, for the notes."""

    def open(self, place: Any, /) -> Reply[None]:
        """Begin in an empty place of the contest's ground: a directory, or the URL of a database."""
        ...

    def append(self, session: str, user_text: str, agent_text: str) -> Reply[None]:
        """Store one exchange, as durably as this store ships. The first one makes the session."""
        ...

    def load(self, session: str) -> Reply[int]:
        """Read all of a session into the store's own objects, and tell how many messages there are."""
        ...

    def list_newest(self, count: int) -> Reply[int] | None:
        """List the newest sessions and tell how many came; None: it does not offer that."""
        ...

    def durability(self) -> Reply[str]:
        """What its own connection tells of journals and flushing, or a few words where there is none."""
        ...

    def close(self) -> Reply[None]: ...


class FillingPeer(Peer, Protocol):
    """A store that has a quicker way to a long session than an append for each exchange."""

    def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> Reply[None]: ...


_SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def pragmas(ask: Callable[[str], tuple[object, ...]]) -> str:
    """The durability of one SQLite connection, in words."""
    return described(ask("PRAGMA journal_mode")[0], ask("PRAGMA synchronous")[0])


def described(journal_mode: object, synchronous: object) -> str:
    """Journal mode and flushing as SQLite names them."""
    level = _SYNCHRONOUS.get(synchronous, synchronous) if isinstance(synchronous, int) else synchronous
    return f"{str(journal_mode).upper()}, {level}"


async def flushing_of_postgres(ask: Callable[[str], Awaitable[object]]) -> str:
    """The durability of one PostgreSQL connection, in words."""
    return f"fsync {await ask('SHOW fsync')}, synchronous_commit {await ask('SHOW synchronous_commit')}"


def flushing_of_valkey(settings: Mapping[Any, Any]) -> str:
    """The durability of a Valkey server, in words."""
    return f"appendonly {settings['appendonly']}, appendfsync {settings['appendfsync']}"
