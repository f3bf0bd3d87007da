"""Moments and durations as people write and read them: ``2d``, ``2026-01-31``, ``3h``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from statestore.cli.failures import WRONG_USAGE, CommandFailed

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([smhdwySHDWY])", re.ASCII)  # many take M for months


def duration_of(text: str) -> timedelta:
    """A duration like ``30m``, ``12h``, ``2d``, ``1w`` or ``1y``."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise CommandFailed(f"{text!r} is no duration: write 30m, 12h, 2d, 1w or 1y", WRONG_USAGE)
    try:
        return timedelta(seconds=float(match[1]) * _UNITS[match[2].lower()])
    except OverflowError:
        raise CommandFailed(f"{text!r} is longer than the calendar", WRONG_USAGE) from None


def moment_before_now(text: str) -> datetime:
    """The moment that ``--since`` means: a duration before now, or a date, or a date and a time (UTC if not told)."""
    if _DURATION.fullmatch(text.strip()):
        try:
            return datetime.now(UTC) - duration_of(text)
        except OverflowError:
            return datetime.min.replace(tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CommandFailed(
            f"{text!r} is no moment: write a duration like 2d, a date like 2026-01-31, or 2026-01-31T12:00Z",
            WRONG_USAGE,
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def age_of(moment: datetime, now: datetime | None = None) -> str:
    """How long ago, in its largest unit: ``now``, ``5m``, ``3h``, ``2d``, ``6w``, ``2y``."""
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    for unit in ("y", "w", "d", "h", "m"):
        least = 2 * _UNITS[unit] if unit in "yw" else _UNITS[unit]
        if seconds >= least:
            return f"{int(seconds // _UNITS[unit])}{unit}"
    return "now" if seconds > -60 else "ahead"


def clock_of(moment: datetime) -> str:
    """A moment in the time zone of the person who looks."""
    try:
        return f"{moment.astimezone():%Y-%m-%d %H:%M}"
    except (OverflowError, OSError, ValueError):  # the first and the last day of the calendar have no other zone
        return f"{moment:%Y-%m-%d %H:%M}"
