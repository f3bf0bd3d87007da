"""Cutting long work on many sessions into pieces, so that other writers get their turn in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from statestore.engine import AtomicScope
from statestore.stored import SessionSummary

CHUNK: Final = 1000
CHUNK_BYTES: Final = 4 * 1024 * 1024
"""How many sessions, and how much of them, are deleted at once."""


def chunks(summaries: Sequence[SessionSummary], scope: AtomicScope) -> Iterator[list[SessionSummary]]:
    """The sessions in order, as many at a time as may go into one batch; a large one is a batch of its own."""
    most = CHUNK if scope == "store" else 1
    chunk: list[SessionSummary] = []
    size = 0
    for summary in summaries:
        if chunk and (len(chunk) >= most or size + summary.size > CHUNK_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(summary)
        size += summary.size
    if chunk:
        yield chunk
