"""What not every engine offers: found by its method, or refused with the names of those that have it."""

from __future__ import annotations

from typing import Final

from statestore.engine import Engine
from statestore.errors import NotSupported

_OFFERED_BY: Final = {
    "search_sessions": "sqlite:, postgresql: and file: do",
    "read_changes": "sqlite:, postgresql:, valkey: and file: do",
    "backup": "sqlite: does",
    "repair": "file: and valkey: do",
}


def capable(engine: Engine, method: str) -> object:
    """The engine, if it has the method; `NotSupported` otherwise."""
    if not hasattr(engine, method):
        name = method.replace("read_changes", "watch")
        raise NotSupported(f"{engine.url} does not offer {name}: {_OFFERED_BY[method]}")
    return engine
