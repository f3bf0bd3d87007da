"""What the columns of a row engine hold: kinds of records as numbers, moments as what sorts the newest first."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from statestore.errors import CorruptData, InvalidValue
from statestore.records import AGENT, USER, decode_body, kind_of

EVENT: Final = "event"
INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
"""What fits into a column of whole numbers."""
SENSELESS: Final = (TypeError, AttributeError, ValueError, OverflowError)
"""What comes of a value that we never put in its place: somebody else did, or the storage is damaged."""

PROJECT: Final = "coalesce(project_id, project, projects)"
"""The project of a session, in SQL."""
SUMMARY_COLUMNS: Final = (
    "id, user_id, users, created, updated, agents, events, active_seed_id, active_persona_id, "
    f"{PROJECT}, parent_session_id, coalesce(title, opening), size, version"
)
"""The columns of a session that listings show, in the order of the fields of `SessionSummary`."""


def senseless(where: str, error: BaseException) -> CorruptData:
    """What users are told of a value that makes no sense."""
    return CorruptData(f"{where} holds a value that makes no sense ({error}): check() tells where")


def kind_of_column(column: int) -> str:
    """The kind of the records in a column; an event's own kind is in its body."""
    return USER if column == 0 else AGENT if column == 1 else EVENT


def kind_in(column: int, body: bytes) -> str:
    """The kind of a record, an event's own one included."""
    kind = kind_of_column(column)
    if kind == EVENT:
        with suppress(msgspec.DecodeError, InvalidValue, UnicodeDecodeError):  # not an event: check() tells
            return kind_of(decode_body(kind, body))
    return kind


def age_of(updated_ns: int) -> tuple[int, int]:
    """What sorts the newest first: microseconds before 1970, and the nanoseconds beyond. Both fit into a column."""
    age, rest = divmod(-updated_ns, 1000)
    if age > INT_MAX:
        return INT_MAX, 999
    return (age, rest) if age >= INT_MIN else (INT_MIN, 0)
