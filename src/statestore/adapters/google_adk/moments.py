"""ADK's times, seconds since 1970 as floats, as texts of ours, and back to the same float."""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import Final

from statestore.timestamps import nanoseconds, text_of_micros

_SECOND: Final = 1_000_000_000
_FIRST: Final = nanoseconds("0001-01-01T00:00:00Z")
_LAST: Final = nanoseconds("9999-12-31T23:59:59.999999999Z")


def text_of_seconds(seconds: float) -> str:
    """A time as text, to the nanosecond: finer than a float of our days."""
    nanos = _nanoseconds_of(seconds)
    whole, rest = divmod(nanos, _SECOND)
    return f"{text_of_micros(whole * 1_000_000)[:-1]}.{rest:09}Z" if rest % 1000 else text_of_micros(nanos // 1000)


def seconds_of(text: str) -> float:
    """The float behind a text; division of whole numbers rounds correctly."""
    return nanoseconds(text) / _SECOND


def _nanoseconds_of(seconds: float) -> int:
    """Nanoseconds since 1970; a time that is in no calendar counts as now."""
    nanos = round(Fraction(seconds) * _SECOND) if math.isfinite(seconds) else _LAST + 1
    return nanos if _FIRST <= nanos <= _LAST else time.time_ns()
