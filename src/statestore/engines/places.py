"""Where a record is, in one number: its session's number, and below it its own. So tables in SQLite are keyed by it.

The statements of the engines count on this layout, too, and write it out: ``place >> 32`` is the session's number.
"""

from __future__ import annotations

from typing import Final

from statestore.errors import NotSupported

SEQ_BITS: Final = 32
LAST_SEQ: Final = (1 << SEQ_BITS) - 1


def place_of(number: int, seq: int) -> int:
    """The place of a record: all of a session's lie together, in the order of their numbers."""
    if seq > LAST_SEQ:
        raise beyond(seq)
    return number << SEQ_BITS | seq


def beyond(seq: int) -> NotSupported:
    """What is told of a sequence number for which there is no place."""
    return NotSupported(f"a session in SQLite has sequence numbers up to {LAST_SEQ}, and {seq} is beyond")


def seq_of(place: int) -> int:
    """The sequence number of the record in a place."""
    return place & LAST_SEQ


def number_of(place: int) -> int:
    """The number of the session that a place belongs to."""
    return place >> SEQ_BITS


def places_between(number: int, after: int | None, before: int | None) -> tuple[int, int]:
    """The first and the last place that records above ``after`` and below ``before`` can have."""
    first = 0 if after is None else min(after, LAST_SEQ) + 1
    last = LAST_SEQ if before is None else min(before, LAST_SEQ + 1) - 1
    base = number << SEQ_BITS
    return base + max(first, 0), base + max(last, -1)
