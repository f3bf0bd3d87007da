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

log = logging.getLogger("statestore")

PIECE: Final = 500
"""How many rows are looked at together, at least, behind those that were left out."""


async def list_sessions(connection: Connection, query: SessionQuery) -> list[SessionSummary]:
    """The sessions that a query selects."""
    if not is_storable(query.user_id):
        return []
    order = ("id",) if query.order == "id" else ("age", "age_rest", "id")
    after: Sequence[Any] | None = None
    if query.after is not None:
        moment = () if query.order == "id" else age_of(query.after.updated_ns)
        after = (*moment, place_before(query.after.id))
    limit = most = None if query.limit is None else fitted(query.limit)
    found: list[SessionSummary] = []
    while True:
        rows = await _rows(connection, query, order, after, most)
        found += _summaries(rows)
        if limit is None or most is None or len(found) >= limit or len(rows) < most:
            return found[:limit]
        after = [rows[-1][column] for column in order]
        most = max(PIECE, limit - len(found))  # others take the places of those that are left out


async def _rows(
    connection: Connection, query: SessionQuery, order: Sequence[str], after: Sequence[Any] | None, most: int | None
) -> Sequence[Row]:
    """The rows of the sessions that a query selects, from a place on; behind the summary stands where each is."""
    conditions = _Conditions(query)
    columns = ", ".join(order)
    if after is not None:
        conditions.add(f"({columns}) > ({', '.join('{}' for _ in order)})", *after)
    sql = f"SELECT {SUMMARY_COLUMNS}, age, age_rest FROM sessions {conditions.clause} ORDER BY {columns}"  # noqa: S608 - our own names
    return await connection.fetch(sql if most is None else f"{sql} LIMIT {most}", *conditions.values)


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
        summary = SessionSummary(*values[:-2])
        nanoseconds(summary.created_text)
        nanoseconds(summary.updated_text)
    except (InvalidValue, UnicodeDecodeError) as error:
        log.warning("session %s is left out of the listing: %s", row[0], error)
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
            if query.user_id is None:  # else it is found among the sessions of the user
                self.add(f"sha256({PROJECT}) = sha256({{}})", project)
            if query.user_id is not None or query.order == "id":  # else it is walked from the newest on, not sorted
                self.add(f"{PROJECT} = {{}}", project)
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
