"""Pruning: sessions that are too old or too many go, into the trash or for good, now or in the background."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from functools import partial
from typing import Final, Literal, overload

from statestore.engine import DeleteSession, Requires, SessionQuery
from statestore.errors import CorruptData, StoreUnavailable
from statestore.host import Host
from statestore.pruning import Doomed, PruneConfig, PruneThrottle, check_config, doomed
from statestore.session import Session
from statestore.store.deleting import deletable_chunks, delete_sessions
from statestore.store.logs import log
from statestore.store.trashing import Discard, SessionTrasher
from statestore.stored import SessionSummary, StoredSession

TRASH_CHUNK: Final = 50
TRASH_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""How many sessions, and how much of them, are put into the trash at once."""


class SessionPruner(SessionTrasher):
    """Deletes sessions that are too old or too many, but none that was written to after it was judged."""

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
                    log().warning("pruning sessions in the background failed", exc_info=True)

            try:
                self._host.spawn(prune)
            except RuntimeError:  # no thread, or the interpreter ends: what was saved is saved
                self._throttle.give_back()
                log().warning("pruning sessions in the background could not begin", exc_info=True)

    @overload
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[False] = False) -> int: ...
    @overload
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[True]) -> list[Doomed]: ...
    async def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: bool = False) -> int | list[Doomed]:
        """Delete sessions that are too old or too many; how many really went. A dry run tells which would, and why.

        What was saved after it was judged stays. What was in the trash for its time is removed from it.
        """
        config = check_config(config)
        summaries = await self._engine.list_sessions(SessionQuery(user_id=self._owner))
        chosen = doomed(summaries, config, time.time_ns())
        if dry_run:
            return chosen
        await self._remove_what_is_over()
        going = [candidate.session for candidate in chosen]
        if config.trash_hours:
            pruned = await self._throw_unchanged_away(going, config.trash_hours)
        else:
            pruned = await self._delete_unchanged(going)
        if pruned:
            log().info("pruned %d of %d sessions", pruned, len(summaries))
        return pruned

    async def _delete_unchanged(self, summaries: Sequence[SessionSummary]) -> int:
        """Delete sessions that are still at the version they were listed with; how many were."""
        as_created = sorted(summaries, key=lambda summary: summary.created_text)  # as they lie in a database
        pruned = 0
        for chunk in deletable_chunks(as_created):
            changes = [
                DeleteSession(summary.id, Requires(version=summary.version, owner=self._owner)) for summary in chunk
            ]
            try:
                pruned += await delete_sessions(self._engine, changes)
            except StoreUnavailable as error:
                if not _is_full(error):
                    raise
                for change in changes:  # one by one, nothing needs to be written first
                    pruned += await delete_sessions(self._engine, [change])
        return pruned

    def _discard_unchanged(self, stored: StoredSession, *, version: str, hours: int) -> Discard | None:
        """The changes that move a session into the trash, if it is still at that version."""
        return self._discard(stored, hours) if str(stored.version) == version else None

    async def _throw_unchanged_away(self, summaries: Sequence[SessionSummary], hours: int) -> int:
        """Put sessions into the trash that are still at the version they were listed with; how many were."""
        pruned = size = 0
        discards: list[Discard] = []
        for summary in summaries:
            try:
                discard = await self._made_of(
                    summary.id, partial(self._discard_unchanged, version=summary.version, hours=hours)
                )
                if discard is None:
                    continue
                discards.append(discard)
            except CorruptData as error:
                log().warning("session %s cannot be put into the trash, and stays: %s", summary.id, error)
                continue
            size += len(discards[-1].content.body)
            if len(discards) >= TRASH_CHUNK or size >= TRASH_CHUNK_BYTES:
                pruned += await self._throw_away(discards)
                discards, size = [], 0
        return pruned + await self._throw_away(discards)


def _is_full(error: StoreUnavailable) -> bool:
    """Whether the storage had no room, so that nothing of the batch happened."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
