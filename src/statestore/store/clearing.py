"""Deleting many sessions: pruning the old and the many, now or in the background."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, overload

from statestore.engine import DeleteSession, PreconditionFailed, Requires, SessionQuery
from statestore.errors import StoreUnavailable
from statestore.host import Host
from statestore.pruning import Doomed, PruneConfig, PruneThrottle, check_config, doomed
from statestore.session import Session
from statestore.store.watching import SessionWatcher
from statestore.stored import SessionSummary

if TYPE_CHECKING:
    import logging

CHUNK: Final = 500
"""How many sessions are deleted at once; other writers get their turn in between."""


class SessionClearer(SessionWatcher):
    """Prunes."""

    def __init__(self, host: Host, owner: str | None, throttle: PruneThrottle) -> None:
        super().__init__(host, owner)
        self._throttle = throttle

    async def save_session_with_prune(self, session: Session, prune_config: PruneConfig | None = None) -> None:
        """Save, then prune in the background, at most once per cooldown however many save.

        Without a config, the newest 100 sessions of the last 7 days are kept. Closing the store waits for the prune.
        """
        config = check_config(prune_config)
        await self.save_session(session)
        if self._throttle.should_prune():

            async def prune() -> None:
                try:
                    await self.prune_sessions(config)
                except Exception:  # noqa: BLE001 - nobody waits for it, so it is told to the log
                    self._throttle.give_back()
                    _log().warning("pruning sessions in the background failed", exc_info=True)

            self._host.spawn(prune)

    @overload
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[False] = False) -> int: ...
    @overload
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[True]) -> list[Doomed]: ...
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: bool = False) -> int | list[Doomed]:
        """Delete sessions that are too old or too many; how many really went. A dry run tells which would, and why.

        What was saved after it was judged stays.
        """
        config = check_config(config)
        summaries = await self._engine.list_sessions(SessionQuery(user_id=self._owner))
        chosen = doomed(summaries, config, time.time_ns())
        if dry_run:
            return chosen
        pruned = await self._delete_unchanged([candidate.session for candidate in chosen])
        if pruned:
            _log().info("pruned %d of %d sessions", pruned, len(summaries))
        return pruned

    async def _delete_unchanged(self, summaries: Sequence[SessionSummary]) -> int:
        """Delete sessions that are still at the version they were listed with; how many were."""
        size = CHUNK if self._engine.atomic_scope == "store" else 1
        as_created = sorted(summaries, key=lambda summary: summary.created_text)  # as they lie in a database
        pruned = 0
        for start in range(0, len(as_created), size):
            chunk = [
                DeleteSession(summary.id, Requires(version=summary.version, owner=self._owner))
                for summary in as_created[start : start + size]
            ]
            try:
                pruned += await self._delete_chunk(chunk)
            except StoreUnavailable as error:
                if not _is_full(error):
                    raise
                for change in chunk:  # one by one, nothing needs to be written first
                    pruned += await self._delete_chunk([change])
        return pruned

    async def _delete_chunk(self, chunk: Sequence[DeleteSession]) -> int:
        """Delete those sessions of a chunk that nobody changed; how many there were."""
        while chunk:
            try:
                outcomes = await self._engine.commit(chunk)
            except PreconditionFailed as failed:
                spared = {failure.index for failure in failed.failures}
                chunk = [change for index, change in enumerate(chunk) if index not in spared]
            else:
                return sum(outcome.deleted for outcome in outcomes)
        return 0


def _is_full(error: StoreUnavailable) -> bool:
    """Whether the storage had no room, so that nothing of the batch happened."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _log() -> logging.Logger:
    """The library's logger; it is loaded when there is something to say, because loading it takes 3 ms."""
    import logging  # noqa: PLC0415

    return logging.getLogger("statestore")
