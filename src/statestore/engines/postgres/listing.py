"""Listing and counting sessions, by index: newest first, of everybody or of one user, or by id."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from statestore.engine import SessionQuery
from statestore.engines.columns import PROJECT, SUMMARY_COLUMNS, age_of
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.places import fitted, is_storable, place_before
from statestore.engines.postgres.reading import text_of
from statestore.errors import InvalidValue
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

_log: Final = logging.getLogger(__name__)


async def list_sessions(connection: Connection, query: SessionQuery) -> list[SessionSummary]:
    """The sessions that a query selects."""
    if not is_storable(query.user_id):
        return []
    conditions = _Conditions(query)
    if query.order == "id":
        order = "id"
        if query.after is not None:
            conditions.add("id > {}", place_before(query.after.id))
    else:
        order = "age, age_rest, id"
        if query.after is not None:
            place = (*age_of(query.after.updated_ns), place_before(query.after.id))
            conditions.add("(age, age_rest, id) > ({}, {}, {})", *place)
    sql = f"SELECT {SUMMARY_COLUMNS} FROM sessions {conditions.clause} ORDER BY {order}"  # noqa: S608 - our own names
    if query.limit is None:
        return _summaries(await connection.fetch(sql, *conditions.values))
    limit, left_out = fitted(query.limit), 0
    while True:  # others take the places of those that are left out
        rows = await connection.fetch(f"{sql} LIMIT {fitted(limit + left_out)}", *conditions.values)
        found = _summaries(rows)
        if len(found) >= limit or len(rows) < limit + left_out:
            return found[:limit]
        left_out = len(rows) - len(found)


def _summaries(rows: Sequence[Row]) -> list[SessionSummary]:
    """The sessions of some rows, but for those that are damaged."""
    return [summary for summary in map(_summary, rows) if summary is not None]


async def count_sessions(connection: Connection, query: SessionQuery) -> int:
    """How many sessions a query selects, ``limit`` and ``after`` aside."""
    if not is_storable(query.user_id):
        return 0
    conditions = _Conditions(query)
    return await connection.fetchval(f"SELECT count(*) FROM sessions {conditions.clause}", *conditions.values)  # noqa: S608


def _summary(row: Row) -> SessionSummary | None:
    try:
        values: list[Any] = [text_of(value) if isinstance(value, bytes) else value for value in row]
        summary = SessionSummary(*values)
        nanoseconds(summary.created_text)
        nanoseconds(summary.updated_text)
    except (InvalidValue, UnicodeDecodeError) as error:
        _log.warning("session %s is left out of the listing: %s", row[0], error)
        return None
    return summary


class _Conditions:
    """What a query asks for, as SQL."""

    def __init__(self, query: SessionQuery) -> None:
        self._where: list[str] = []
        self.values: list[Any] = []
        if query.user_id is not None:
            self.add("user_id = {}", query.user_id)
        if query.project_id is not None:
            project = _encoded(query.project_id)
            self.add(f"{PROJECT} = {{}}", project)
            if query.user_id is None:  # else it is found among the sessions of the user
                self.add(f"sha256({PROJECT}) = sha256({{}})", project)
        if query.parent_session_id is not None:
            parent = _encoded(query.parent_session_id)
            self.add("sha256(parent_session_id) = sha256({}) AND parent_session_id = {}", parent, parent)
        if query.top_level:
            self.add("parent_session_id IS NULL")
        if query.updated_since_ns is not None:
            self.add("(age, age_rest) <= ({}, {})", *age_of(query.updated_since_ns))

    def add(self, condition: str, *values: Any) -> None:
        """Ask for something more; ``{}`` stands for a value."""
        first = len(self.values) + 1
        self._where.append(condition.format(*(f"${first + place}" for place in range(len(values)))))
        self.values += values

    @property
    def clause(self) -> str:
        """All conditions."""
        return "WHERE " + " AND ".join(self._where) if self._where else ""


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
