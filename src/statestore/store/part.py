"""What all parts of a store share: the way to its engine, and that they stay where it was opened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from statestore.engine import Change, Engine, Outcome, PreconditionFailed
from statestore.host import Host
from statestore.store.failures import explained


class StorePart:
    """Reads and writes through the engine of its host, and is neither pickled nor copied."""

    _host: Host

    def __reduce__(self) -> NoReturn:
        raise not_portable()

    @property
    def _engine(self) -> Engine:
        return self._host.engine

    async def _commit(self, *batch: Change) -> Sequence[Outcome]:
        """Make some changes, or raise the error that users are told if they cannot be made."""
        try:
            return await self._engine.commit(batch)
        except PreconditionFailed as failed:
            raise explained(failed, batch) from None


def not_portable() -> TypeError:
    """What is told to who pickles or copies a store, which would take its locks and connections along."""
    return TypeError("a store is neither pickled nor copied: open it where it is needed, with what it was opened with")
