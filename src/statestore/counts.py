"""Whole numbers that users give: how many to return, how many to keep, and for how many hours."""

from __future__ import annotations

from statestore.errors import InvalidValue


def check_whole_number(name: str, value: object) -> int:
    """The value of this name, if it is a whole number from 0 up; `InvalidValue` if it is not."""
    if type(value) is not int or value < 0:
        raise InvalidValue(f"{name} is a whole number from 0 up, not {value!r}")
    return value
