"""Moments as RFC 3339 text: read without losing a digit, written as the Rust program writes them.

What was on disk keeps its text. A ``datetime`` is made from it by cutting, never by rounding, and
order is decided by the whole number of nanoseconds since 1970.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from statestore.errors import InvalidValue

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:([Zz])|([+-])(\d\d):?(\d\d))", re.ASCII
)
HOUR_NS: Final = 3600 * 10**9
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)
_MOMENTS = list[Annotated[datetime, msgspec.Meta(tz=True)]]
_FIRST_MICROSECOND = -((_EPOCH - _FIRST_MOMENT) // timedelta(microseconds=1))
_LAST_MICROSECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)

_whole_seconds: dict[str, int] = {}
"""Nanoseconds since 1970 of seconds that were read or written lately, by their text."""
_MOST_SECONDS: Final = 4096
_written: dict[str, int] = {}
"""Nanoseconds since 1970 of moments that were written just now, by their text: they are about to be ordered."""
_MOST_WRITTEN: Final = 64


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970 of an RFC 3339 text; `InvalidValue` if it is none."""
    written = _written.get(text)
    return _read(text) if written is None else written


def _read(text: str) -> int:
    if len(text) == 27 and text[26] == "Z" and text[19] == ".":  # the form that we write
        digits = text[20:26]
        if digits.isdigit() and digits.isascii():
            return _whole_second(text[:19]) + int(digits) * 1000
    return _parsed(text)


def _whole_second(text: str) -> int:
    found = _whole_seconds.get(text)
    return _noted(text, _parsed(text + "Z")) if found is None else found


def _noted(text: str, ns: int) -> int:
    if len(_whole_seconds) >= _MOST_SECONDS:
        _whole_seconds.clear()
    _whole_seconds[text] = ns
    return ns


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InvalidValue(f"{text[:60]!r} is not an RFC 3339 timestamp with an offset, like 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second, fraction, _, sign, off_hour, off_minute = match.groups()
    leap = second == "60"  # chrono writes a leap second as :60; it sorts as the second that follows :59
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), 59 if leap else int(second))
    except ValueError as error:
        raise InvalidValue(f"{text!r} is not a timestamp: {error}") from None
    seconds = (moment - datetime(1970, 1, 1)) // timedelta(seconds=1) + leap
    if sign:
        if int(off_hour) > 23 or int(off_minute) > 59:
            raise InvalidValue(f"{text!r} is not a timestamp: its offset is out of range")
        offset = int(off_hour) * 3600 + int(off_minute) * 60
        seconds += -offset if sign == "+" else offset
    return seconds * 1_000_000_000 + int((fraction or "0")[:9].ljust(9, "0"))


def latest_of(texts: Sequence[str]) -> datetime:
    """The latest moment that these tell, or a microsecond more; `InvalidValue` if one of them tells none."""
    if not texts:
        return _FIRST_MOMENT
    try:
        return max(msgspec.convert(texts, _MOMENTS))
    except msgspec.ValidationError:  # a form that msgspec does not take, or no timestamp at all
        return moment_of(max(map(nanoseconds, texts)) + 1000)


def sortable(texts: Sequence[str]) -> Sequence[datetime] | Sequence[int]:
    """Something for each text that sorts as the moments do that they tell; `InvalidValue` if one of them tells none."""
    if max(map(len, texts), default=0) <= len("2026-01-31T12:00:00.123456Z"):  # no digit that a datetime does not hold
        try:
            return msgspec.convert(texts, _MOMENTS)
        except msgspec.ValidationError:
            pass  # a form that msgspec does not take, or no timestamp at all
    return [nanoseconds(text) for text in texts]


def later_of(one: str, other: str) -> str:
    """The text that tells the later moment; the first one if they tell the same."""
    return one if nanoseconds(one) >= nanoseconds(other) else other


def datetime_of(text: str) -> datetime:
    """The moment as an aware UTC ``datetime``, cut to microseconds."""
    return moment_of(nanoseconds(text))


def moment_of(ns: int) -> datetime:
    """Nanoseconds since 1970 as an aware UTC ``datetime``, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=min(max(ns // 1000, _FIRST_MICROSECOND), _LAST_MICROSECOND))


def text_of(moment: datetime) -> str:
    """An aware ``datetime`` as UTC text with 0, 3 or 6 digits of a second, as chrono prints it."""
    if not isinstance(moment, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"a timestamp is an aware datetime, not {type(moment).__name__}")
    if moment.utcoffset() is None:
        raise InvalidValue(f"{moment!r} is naive: give it a time zone, for instance datetime.now(timezone.utc)")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(f"{moment!r} is beyond the calendar in UTC") from None
    digits = "auto" if utc.microsecond == 0 else "milliseconds" if utc.microsecond % 1000 == 0 else "microseconds"
    return utc.isoformat(timespec=digits)[:-6] + "Z"


def text_of_micros(micros: int) -> str:
    """Microseconds since 1970 as text."""
    seconds, rest = divmod(micros, 1_000_000)
    if rest % 1000:
        text = f"{_second_text(seconds)}.{str(rest + 1_000_000)[1:]}Z"  # six digits, for half of what a format takes
    else:
        text = f"{_second_text(seconds)}.{rest // 1000:03}Z" if rest else f"{_second_text(seconds)}Z"
    if len(_written) >= _MOST_WRITTEN:
        _written.clear()
    _written[text] = micros * 1000
    return text


@lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}".format(*time.gmtime(seconds)[:6])


def now_text() -> str:
    """The present moment as text."""
    return text_of_micros(time.time_ns() // 1000)


class RisingClock:
    """Gives out texts that rise strictly, whatever the machine's clock does in between."""

    __slots__ = ("_last",)

    def __init__(self, floor_ns: int = -(2**63)) -> None:
        self._last = floor_ns // 1000

    def next(self) -> str:
        """A moment later than every one before it, and not earlier than now."""
        micros = max(time.time_ns() // 1000, self._last + 1)
        if micros > _LAST_MICROSECOND:  # a planted far-future floor must not stop the session
            micros = time.time_ns() // 1000
        self._last = micros
        return text_of_micros(micros)

    def see(self, ns: int) -> None:
        """Note a moment that what comes next must not precede."""
        self._last = max(self._last, ns // 1000)
