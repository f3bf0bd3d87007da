"""What fits into the columns of the database, and what to do with what does not."""

from __future__ import annotations

from typing import Final

from statestore.engines.columns import INT_MAX, INT_MIN
from statestore.errors import NotSupported

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
