"""What only some engines offer: asked for by name, and refused with the names of those that have it."""

from __future__ import annotations

from typing import cast

from statestore.engine import BacksUp, Compacts, Engine, Repairs, Searches, Watches
from statestore.errors import NotSupported


def searching(engine: Engine) -> Searches:
    """The engine, if it can search; `NotSupported` otherwise."""
    _check(engine, "search_sessions", "search", "sqlite:, postgresql: and file: do")
    return cast("Searches", engine)


def watching(engine: Engine) -> Watches:
    """The engine, if it can be watched; `NotSupported` otherwise."""
    _check(engine, "read_changes", "watch", "sqlite:, postgresql:, valkey: (one server) and file: do")
    return cast("Watches", engine)


def backing_up(engine: Engine) -> BacksUp:
    """The engine, if it can make a copy of itself; `NotSupported` otherwise."""
    _check(engine, "backup", "backup", "sqlite: does, and copy_store copies any store")
    return cast("BacksUp", engine)


def compacting(engine: Engine) -> Compacts:
    """The engine, if it can give room back; `NotSupported` otherwise."""
    _check(engine, "compact", "compact", "sqlite: does, and servers have a way of their own")
    return cast("Compacts", engine)


def repairing(engine: Engine) -> Repairs:
    """The engine, if it can repair itself; `NotSupported` otherwise."""
    _check(engine, "repair", "repair", "file: and valkey: do")
    return cast("Repairs", engine)


def _check(engine: Engine, method: str, name: str, offered_by: str) -> None:
    if not hasattr(engine, method):
        raise NotSupported(f"{engine.url} does not offer {name}: {offered_by}")
