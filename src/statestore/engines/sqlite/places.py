"""How numbers are laid out in the database: records by session and sequence number, sessions by how new they are."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from statestore.errors import InvalidValue, NotSupported
from statestore.records import AGENT, USER, decode_body, kind_of

EVENT: Final = "event"
SEQ_BITS: Final = 32
MAX_SEQ: Final = (1 << SEQ_BITS) - 1

_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 63) - 1


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


def kind_of_column(column: int) -> str:
    """The kind of the records in a column; an event's own kind is in its body."""
    return USER if column == 0 else AGENT if column == 1 else EVENT


def kind_in(column: int, body: bytes) -> str:
    """The kind of a record, an event's own one included."""
    kind = kind_of_column(column)
    if kind == EVENT:
        with suppress(msgspec.DecodeError, InvalidValue):  # not an event: check() tells
            return kind_of(decode_body(kind, body))
    return kind


def age_of(updated_ns: int) -> tuple[int, int]:
    """What sorts the newest first: microseconds before 1970, and the nanoseconds beyond. Both fit into SQLite."""
    age, rest = divmod(-updated_ns, 1000)
    if age > _INT_MAX:
        return _INT_MAX, 999
    return (age, rest) if age >= _INT_MIN else (_INT_MIN, 0)
