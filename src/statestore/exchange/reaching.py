"""From the store that a function was given to what lies under it; one of the wrong kind is told where it belongs."""

from __future__ import annotations

from statestore.engine import Engine
from statestore.errors import InvalidValue
from statestore.exchange.sources import Source
from statestore.store.async_store import AsyncStateStore, AsyncUserStore
from statestore.store.beneath import engine_of
from statestore.store.plain import StateStore, UserStore


def plain_source(store: StateStore | UserStore) -> Source:
    """What plain code exports from."""
    if isinstance(store, UserStore):
        return Source(engine_of(store), store.user_id)
    if isinstance(store, StateStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Source(engine_of(store))
    raise _misplaced(store, "a StateStore or a UserStore", "export_sessions")


def loop_source(store: AsyncStateStore | AsyncUserStore) -> Source:
    """What code in an event loop exports from."""
    if isinstance(store, AsyncUserStore):
        return Source(engine_of(store), store.user_id)
    if isinstance(store, AsyncStateStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Source(engine_of(store))
    raise _misplaced(store, "an AsyncStateStore or an AsyncUserStore", "export_sessions")


def plain_target(store: StateStore) -> Engine:
    """What plain code imports into."""
    if isinstance(store, StateStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        return engine_of(store)
    raise _misplaced(store, "a StateStore", "import_sessions")


def loop_target(store: AsyncStateStore) -> Engine:
    """What code in an event loop imports into."""
    if isinstance(store, AsyncStateStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        return engine_of(store)
    raise _misplaced(store, "an AsyncStateStore", "import_sessions")


def _misplaced(store: object, needed: str, function: str) -> InvalidValue:
    """What is told about a store that a function, or its namesake for event loops, cannot take."""
    kind = type(store).__name__
    if function == "import_sessions" and isinstance(store, (UserStore, AsyncUserStore)):
        return InvalidValue(f"{needed} is needed here, not {kind}: the sessions of an export may be anybody's")
    if isinstance(store, (AsyncStateStore, AsyncUserStore)):
        return InvalidValue(f"{needed} is needed here, not {kind}, which is for event loops: use async_{function}")
    if isinstance(store, (StateStore, UserStore)):
        return InvalidValue(f"{needed} is needed here, not {kind}, which is for plain code: use {function}")
    return InvalidValue(f"{needed} is needed here, not {kind}")
