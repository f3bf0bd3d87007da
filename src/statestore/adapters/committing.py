"""Several changes in one commit, each at the version that it is based on."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import Change, Outcome, PreconditionFailed
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of


async def committed(store: AsyncStateStore, changes: Sequence[Change]) -> list[Outcome] | None:
    """Make all changes; ``None`` if one of them is based on what is there no more: nothing was written, look again."""
    try:
        return await engine_of(store).commit(changes)
    except PreconditionFailed:
        return None
