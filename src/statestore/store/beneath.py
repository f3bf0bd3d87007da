"""What lies under a store, for parts of this package that must be exact: reads by number, changes at a version."""

from __future__ import annotations

from statestore.engine import Engine
from statestore.store.async_store import AsyncStateStore, AsyncUserStore
from statestore.store.plain import StateStore, UserStore


def stepped_store(store: StateStore) -> AsyncStateStore:
    """The store whose coroutines a plain one steps, for code that is written once for both faces."""
    return store._store  # pyright: ignore[reportPrivateUsage] - this function is the way in


def engine_of(store: StateStore | AsyncStateStore | UserStore | AsyncUserStore) -> Engine:
    """The engine of a store. What is read there is everybody's, also where the store serves one user."""
    if isinstance(store, StateStore):
        return stepped_store(store)._engine  # pyright: ignore[reportPrivateUsage] - this function is the way in
    if isinstance(store, UserStore):
        return store._sessions._engine  # pyright: ignore[reportPrivateUsage] - likewise
    return store._engine  # pyright: ignore[reportPrivateUsage] - likewise
