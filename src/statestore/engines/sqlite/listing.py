"""Listing and counting sessions, by index: newest first, of everybody or of one user, or by id."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from itertools import product
from typing import Any, Final

from statestore.engine import SessionQuery
from statestore.engines.columns import PROJECT, SUMMARY_COLUMNS, age_of
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.failures import is_about_text
from statestore.engines.sqlite.tolerating import damaged_as_bytes
from statestore.errors import InvalidValue
from statestore.stored import SessionSummary
from statestore.timestamps import latest_of

log = logging.getLogger("statestore")

_SOUND: Final = frozenset(
    (str, str, int, str, str, int, int, *labels, int, str) for labels in product((str, type(None)), repeat=5)
)
"""The types that the values of a row may have."""
_TYPE: Final = "a value in its row is of the wrong type"
_MOMENT: Final = "when it was created or changed cannot be told"

_NO_LIMIT: Final = 2**62
_SELECT: Final = f"SELECT {SUMMARY_COLUMNS}, age, age_rest FROM sessions"  # noqa: S608 - our own names
_PARTS: Final = ("is_busy = 0", "is_busy <> 0")
"""The sessions that the indexes of listings have, and those that they leave out."""
_OF_USER: Final = "user_id = ?"
_OF_USER_BY_INDEX: Final = "number IN ({})".format(
    " UNION ALL ".join(f"SELECT number FROM sessions WHERE {part} AND user_id = ?" for part in _PARTS)  # noqa: S608
)
_SUMMARY: Final = slice(-2)
"""What a row tells of a session, without what it is sorted by."""

PIECE: Final = 500
"""How many rows are looked at together."""


def list_sessions(connection: sqlite3.Connection, query: SessionQuery) -> list[SessionSummary]:
    """The sessions that a query selects, but for those that are damaged."""
    try:
        return _list_sessions(connection, query)
    except sqlite3.OperationalError as error:
        if not is_about_text(error):
            raise
    with damaged_as_bytes(connection):
        return _list_sessions(connection, query)


def _list_sessions(connection: sqlite3.Connection, query: SessionQuery) -> list[SessionSummary]:
    sql, values = _by_id(query) if query.order == "id" else _newest_first(query)
    limit = _NO_LIMIT if query.limit is None else min(query.limit, _NO_LIMIT)
    found: list[SessionSummary] = []
    count = 0
    with snapshot(connection):
        for most in (limit, _NO_LIMIT):  # others take the places of those that are left out
            with closing(connection.execute(f"{sql} LIMIT ? OFFSET ?", (*values, most, count))) as rows:
                while len(found) < limit and (some := rows.fetchmany(min(PIECE, limit - len(found)))):
                    found += _summaries(some)
                    count += len(some)
            if len(found) == limit or count < limit:
                break
    return found


def _by_id(query: SessionQuery) -> tuple[str, list[object]]:
    """By the index of ids; those of one user are gathered by the index of users, and sorted."""
    where, values = _conditions(query)
    if query.user_id is not None:
        where[where.index(_OF_USER)] = _OF_USER_BY_INDEX
        values.insert(0, query.user_id)
    if query.after is not None:
        where.append("id > ?")
        values.append(query.after.id)
    return f"{_SELECT} {_clause(where)} ORDER BY id", values


def _newest_first(query: SessionQuery) -> tuple[str, list[object]]:
    """By index, but for sessions that are busy: SQLite sorts those few, and puts them in their places."""
    where, values = _conditions(query)
    if query.after is not None:
        where.append("(age, age_rest, id) > (?, ?, ?)")
        values += [*age_of(query.after.updated_ns), query.after.id]
    idle, busy = (_clause([part, *where]) for part in _PARTS)
    return f"{_SELECT} {idle} UNION ALL {_SELECT} {busy} ORDER BY age, age_rest, id", values * 2


def _summaries(rows: list[tuple[Any, ...]]) -> list[SessionSummary]:
    """The sessions of some rows, but for those that are damaged."""
    found: list[SessionSummary] = []
    for row in rows:
        shown = row[_SUMMARY]
        if tuple(map(type, shown)) in _SOUND:
            found.append(SessionSummary(*shown))
        else:
            _warn_left_out(row[0], _TYPE)
    return found if _tell_moments(found) else _with_moments(found)


def _with_moments(summaries: list[SessionSummary]) -> list[SessionSummary]:
    """Those sessions of which it can be told when they were created and changed."""
    found: list[SessionSummary] = []
    for summary in summaries:
        if _tell_moments([summary]):
            found.append(summary)
        else:
            _warn_left_out(summary.id, _MOMENT)
    return found


def _tell_moments(summaries: list[SessionSummary]) -> bool:
    """Whether it can be told of all of them when they were created and changed."""
    try:
        latest_of([text for summary in summaries for text in (summary.created_text, summary.updated_text)])
    except InvalidValue:
        return False
    return True


def _warn_left_out(session_id: object, why: str) -> None:
    log.warning("the session %r is left out of the listing: %s", session_id, why)


def count_sessions(connection: sqlite3.Connection, query: SessionQuery) -> int:
    """How many sessions a query selects, ``limit`` and ``after`` aside."""
    where, values = _conditions(query)
    has_index = query.user_id is not None or query.updated_since_ns is not None
    parts = [[part, *where] for part in _PARTS] if has_index else [where]
    counts = (f"SELECT count(*) FROM sessions {_clause(part)}" for part in parts)  # noqa: S608 - our own names
    rows = connection.execute(" UNION ALL ".join(counts), values * len(parts))
    return sum(count for (count,) in rows)


def _clause(where: list[str]) -> str:
    return "WHERE " + " AND ".join(where) if where else ""


def _conditions(query: SessionQuery) -> tuple[list[str], list[object]]:
    where: list[str] = []
    values: list[object] = []
    if query.user_id is not None:
        where.append(_OF_USER)
        values.append(query.user_id)
    if query.project_id is not None:
        where.append(f"{PROJECT} = ?")
        values.append(query.project_id)
    if query.parent_session_id is not None:
        where.append("parent_session_id = ?")
        values.append(query.parent_session_id)
    if query.top_level:
        where.append("parent_session_id IS NULL")
    if query.updated_since_ns is not None:
        where.append("(age, age_rest) <= (?, ?)")
        values += age_of(query.updated_since_ns)
    return where, values
