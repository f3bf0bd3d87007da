"""Deleting many sessions, a piece at a time, so that other writers get their turn in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statestore.engine import DeleteSession, Engine, PreconditionFailed
from statestore.store.chunks import chunks
from statestore.store.singly import commit_each
from statestore.stored import SessionSummary

CHUNK: Final = 1000
CHUNK_BYTES: Final = 4 * 1024 * 1024
"""How many sessions, and how much of them, are deleted at once."""


def deletable_chunks(summaries: Sequence[SessionSummary]) -> Iterator[list[SessionSummary]]:
    """The sessions in order, as many at a time as are deleted at once."""
    return chunks(summaries, CHUNK, CHUNK_BYTES)


async def delete_sessions(engine: Engine, chunk: Sequence[DeleteSession]) -> int:
    """Delete those sessions of a chunk that may be deleted; how many there were."""
    if engine.atomic_scope == "item":
        return await _delete_each(engine, chunk)
    while chunk:
        try:
            outcomes = await engine.commit(chunk)
        except PreconditionFailed as failed:
            spared = {failure.index for failure in failed.failures}
            chunk = [change for index, change in enumerate(chunk) if index not in spared]
        else:
            return sum(outcome.deleted for outcome in outcomes)
    return 0


async def _delete_each(engine: Engine, chunk: Sequence[DeleteSession]) -> int:
    """The same where a batch is one item."""
    results = await commit_each(engine, chunk)
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, PreconditionFailed):
            raise result
    return sum(outcome.deleted for result in results if not isinstance(result, Exception) for outcome in result)
