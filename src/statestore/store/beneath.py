"""What lies under a store, for parts of this package that must be exact: reads by number, changes at a version."""

from __future__ import annotations

from statestore.engine import Engine
from statestore.store.async_store import AsyncStateStore
from statestore.store.plain import StateStore


def stepped_store(store: StateStore) -> AsyncStateStore:
    """The store whose coroutines a plain one steps, for code that is written once for both faces."""
    return store._store  # pyright: ignore[reportPrivateUsage] - this function is the way in


def engine_of(store: StateStore | AsyncStateStore) -> Engine:
    """The engine of a store."""
    under = stepped_store(store) if isinstance(store, StateStore) else store
    return under._engine  # pyright: ignore[reportPrivateUsage] - this function is the way in
