"""How the keys of records are laid out: by session, and by sequence number."""

from __future__ import annotations

from typing import Final

from statestore.errors import NotSupported

SEQ_BITS: Final = 32
MAX_SEQ: Final = (1 << SEQ_BITS) - 1


def place_of(number: int, seq: int) -> int:
    """The key of a record: all of a session's lie together, in the order of their numbers."""
    if seq > MAX_SEQ:
        raise NotSupported(f"a session in SQLite has sequence numbers up to {MAX_SEQ}, and {seq} is beyond")
    return number << SEQ_BITS | seq


def seq_of(place: int) -> int:
    """The sequence number in a record's key."""
    return place & MAX_SEQ


def number_of(place: int) -> int:
    """The session's number in a record's key."""
    return place >> SEQ_BITS


def places_between(number: int, after: int | None, before: int | None) -> tuple[int, int]:
    """The first and the last key that records above ``after`` and below ``before`` can have."""
    first = 0 if after is None else min(after, MAX_SEQ) + 1
    last = MAX_SEQ if before is None else min(before, MAX_SEQ + 1) - 1
    base = number << SEQ_BITS
    return base + max(first, 0), base + max(last, -1)
