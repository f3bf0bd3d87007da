"""Forgetting what nobody needs any more, now and then, beside the work: old outcomes, and all but the last changes."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.persisting import Attempt, Persistence
from statestore.engines.postgres.statements import SQL
from statestore.errors import StateStoreError

SECONDS: Final = 600
BATCHES: Final = 5000
"""It is time when one of these has passed since the last time."""

log = logging.getLogger("statestore")


class Tidying:
    """Has the database tidied up when enough was written. Of many processes, one at a time does it."""

    def __init__(self, persistence: Persistence, *, changes_kept: int) -> None:
        self._persistence = persistence
        self._changes_kept = changes_kept
        self._batches = 0
        self._due: float | None = None
        self._task: asyncio.Task[None] | None = None

    def note(self, batches: int) -> None:
        """Some batches were made: begin if it is time."""
        now = asyncio.get_running_loop().time()
        if self._due is None:
            self._due = now + SECONDS
        self._batches += batches
        if self._task is None and (self._batches >= BATCHES or now >= self._due):
            self._batches, self._due = 0, now + SECONDS
            self._task = asyncio.create_task(self._tidy_up(), name="statestore-tidying")
            self._task.add_done_callback(self._forget)

    def _forget(self, _: asyncio.Task[None]) -> None:
        self._task = None

    async def _tidy_up(self) -> None:
        async def tidy_up(connection: Connection, _: Attempt) -> None:
            await connection.execute(SQL["tidy_up"], self._changes_kept)

        try:
            await self._persistence.run(tidy_up)
        except StateStoreError as error:  # nothing is lost; the next time will do
            log.warning("old changes and outcomes were not removed: %s", error)

    async def close(self) -> None:
        """Wait until it is done, if it is under way."""
        if self._task is not None:
            await asyncio.wait([self._task])
