"""The engine under a store, for what must be exact: reads by number, and several changes in one commit at a version."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import Change, Engine, Outcome, PreconditionFailed
from statestore.store.async_store import AsyncStateStore


def engine_of(store: AsyncStateStore) -> Engine:
    """The engine under a store."""
    return store._engine  # pyright: ignore[reportPrivateUsage] - this function is the way in


async def committed(store: AsyncStateStore, changes: Sequence[Change]) -> list[Outcome] | None:
    """Make all changes; ``None`` if one of them is based on what is there no more: nothing was written, look again."""
    try:
        return await engine_of(store).commit(changes)
    except PreconditionFailed:
        return None
