"""Moments and durations, as people write and read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from statestore.cli.failures import CommandFailed
from statestore.cli.moments import age_of, clock_of, duration_of, moment_before_now

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (-3600, "ahead"),
        (-1, "now"),
        (59, "now"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (86400, "1d"),
        (13 * 86400, "13d"),
        (14 * 86400, "2w"),
        (729 * 86400, "104w"),
        (730 * 86400, "2y"),
    ],
)
def test_an_age_is_told_in_its_largest_unit(seconds: int, age: str) -> None:
    assert age_of(NOW - timedelta(seconds=seconds), NOW) == age


@pytest.mark.parametrize(
    ("text", "hours"), [("30m", 0.5), ("12h", 12), ("2d", 48), ("1w", 168), ("1.5D", 36), ("0s", 0)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, hours: float) -> None:
    assert duration_of(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "2", "d", "-2d", "2 months", "2M", "999999999y", "٣d"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(CommandFailed):
        duration_of(text)


def test_a_moment_is_a_date_a_time_or_a_duration_before_now() -> None:
    assert moment_before_now("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert moment_before_now("2026-01-31T13:00+01:00") == NOW
    assert abs(moment_before_now("2d") - (datetime.now(UTC) - timedelta(days=2))) < timedelta(minutes=1)
    assert moment_before_now("9999y") == datetime.min.replace(tzinfo=UTC)


def test_the_first_and_the_last_moment_of_the_calendar_can_be_told() -> None:
    for moment in (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)):
        assert clock_of(moment)
