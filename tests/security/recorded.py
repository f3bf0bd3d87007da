"""An engine that writes down every change it is asked to make, and makes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statestore import Engine
from statestore.engine import Change, ChangeSession, DeleteSession, Outcome


class Recorded:
    """Stands before an engine. Everything but writing goes straight to it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.changes: list[Change] = []

    def __getattr__(self, name: str) -> Any:
        if name == "commit_group":  # so that all batches come one by one
            raise AttributeError(name)
        return getattr(self._engine, name)

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        self.changes += batch
        return await self._engine.commit(batch)

    def unbound_to(self, user_id: str) -> list[Change]:
        """The changes of sessions that could reach one of somebody else."""
        return [change for change in self.changes if not _is_bound(change, user_id)]


def _is_bound(change: Change, user_id: str) -> bool:
    if isinstance(change, ChangeSession) and change.create is not None:
        is_new = change.requires.absent or change.requires.owner == user_id
        return is_new and change.create.user_id == user_id
    if isinstance(change, (ChangeSession, DeleteSession)):
        return change.requires.owner == user_id
    return True
