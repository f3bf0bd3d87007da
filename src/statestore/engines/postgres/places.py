"""How numbers are laid out in the database: what fits, and how new a session is."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from statestore.errors import InvalidValue, NotSupported
from statestore.records import AGENT, USER, decode_body, kind_of

EVENT: Final = "event"
INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
MAX_SEQ: Final = INT_MAX - 1
"""One more must fit, too: the next number to be given out."""


def check_seq(seq: int) -> int:
    """Give a sequence number back; refuse one that does not fit."""
    if not INT_MIN <= seq <= MAX_SEQ:
        raise NotSupported(f"a session in PostgreSQL has sequence numbers up to {MAX_SEQ}, and {seq} is beyond")
    return seq


def fitted(number: int) -> int:
    """The number, or the nearest one that fits."""
    return min(max(number, INT_MIN), INT_MAX)


def age_of(updated_ns: int) -> tuple[int, int]:
    """What sorts the newest first: microseconds before 1970, and the nanoseconds beyond. Both fit."""
    age, rest = divmod(-updated_ns, 1000)
    if age > INT_MAX:
        return INT_MAX, 999
    return (age, rest) if age >= INT_MIN else (INT_MIN, 0)


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


def is_storable(*texts: str | None) -> bool:
    """Whether PostgreSQL could hold these texts: without a NUL and without half a character."""
    for text in texts:
        if text is not None:
            if "\0" in text:
                return False
            try:
                text.encode()
            except UnicodeEncodeError:
                return False
    return True


def place_before(text: str) -> str:
    """A text that PostgreSQL can hold, above which all that it holds is what is above this one."""
    text = text.partition("\0")[0]
    return text.encode(errors="replace").decode()
