"""Noting in the change log what a session file has become. All of it happens in a transaction that others begin.

What is compared is what the log itself knows, not what a process remembers: so of several processes that see a
change, one notes it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from statestore.engines.files.states import Difference, SessionState, difference
from statestore.engines.options import CHANGES_KEPT


class LogState(NamedTuple):
    """How far the log is."""

    identity: str
    rules: int
    oldest: int
    """The first change that is still kept."""
    last: int
    """The last change there ever was; 0 if there was none."""


def log_state(connection: sqlite3.Connection) -> LogState:
    """How far the log is, now."""
    row = connection.execute(
        "SELECT identity, rules, (SELECT min(change) FROM changes), "
        "(SELECT seq FROM sqlite_sequence WHERE name = 'changes') FROM log"
    ).fetchone()
    identity, rules, oldest, last = row
    return LogState(identity, rules, oldest or 1, last or 0)


def note_state(
    connection: sqlite3.Connection, session_id: str, entry: str, version: str, state: Callable[[], SessionState]
) -> None:
    """Note that a session file was seen in a state, which is worked out if the log does not know its version."""
    row = connection.execute(
        "SELECT number, version, entry, user_id, created, given_title, header FROM sessions WHERE id = ?", (session_id,)
    ).fetchone()
    if row is not None and row[1] == version:
        if row[2] != entry:
            connection.execute("UPDATE sessions SET entry = ? WHERE number = ?", (entry, row[0]))
        return
    now = state()
    if row is not None and (now.user_id, now.created) != (row[3], row[4]):
        note_gone(connection, session_id)  # the id is the same, the session is another one
        row = None
    if row is None:
        _insert(connection, session_id, entry, now)
    else:
        _update(connection, row[0], entry, now, title=row[5], header=row[6])


def _insert(connection: sqlite3.Connection, session_id: str, entry: str, now: SessionState) -> None:
    number = connection.execute(
        "INSERT INTO sessions (id, entry, version, user_id, created, project, title, given_title, header) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(session_id, entry, now.version, now.user_id, now.created),
            *(now.project, now.title, now.given_title, now.header),
        ),
    ).lastrowid
    assert number is not None
    connection.execute("INSERT INTO marks VALUES (?, ?)", (number, now.marks))
    _add_change(connection, number, difference(b"", now), is_header=True)


def _update(
    connection: sqlite3.Connection, number: int, entry: str, now: SessionState, *, title: str | None, header: int
) -> None:
    (before,) = connection.execute("SELECT marks FROM marks WHERE number = ?", (number,)).fetchone()
    records = difference(before, now)
    is_other = before != now.marks
    connection.execute(
        "UPDATE sessions SET entry = ?, version = ?, project = ?, title = ?, given_title = ?, header = ?, "
        "kept_seq = min(kept_seq, ifnull(?, kept_seq)), is_indexed = is_indexed AND ? WHERE number = ?",
        (
            *(entry, now.version, now.project, now.title, now.given_title, now.header),
            *(records.rewound_to, not is_other and title == now.given_title, number),
        ),
    )
    if is_other:
        connection.execute("UPDATE marks SET marks = ? WHERE number = ?", (now.marks, number))
    if is_other or header != now.header:
        _add_change(connection, number, records, is_header=header != now.header)


def note_unreadable(connection: sqlite3.Connection, session_id: str, entry: str) -> None:
    """Note that a session file makes no sense any more: to all who look, its records are gone."""
    row = connection.execute(
        "SELECT number, version, length(marks) FROM sessions JOIN marks USING (number) WHERE id = ?", (session_id,)
    ).fetchone()
    if row is None:
        return
    number, version, size = row
    connection.execute("UPDATE sessions SET entry = ? WHERE number = ?", (entry, number))
    if not version:
        return
    connection.execute(
        "UPDATE sessions SET version = '', given_title = NULL, kept_seq = 0, is_indexed = 0 WHERE number = ?", (number,)
    )
    connection.execute("UPDATE marks SET marks = x'' WHERE number = ?", (number,))
    if size:
        _add_change(connection, number, Difference(0, None, None), is_header=False)


def note_gone(connection: sqlite3.Connection, session_id: str) -> None:
    """Note that a session was deleted."""
    row = connection.execute("SELECT number, user_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
    if row is None:
        return
    number, user_id = row
    connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
    connection.execute("DELETE FROM marks WHERE number = ?", (number,))
    connection.execute("INSERT INTO leftovers VALUES (?)", (number,))
    connection.execute(
        "INSERT INTO changes (number, gone_id, gone_user) VALUES (?, ?, ?)", (number, session_id, user_id)
    )


def _add_change(connection: sqlite3.Connection, number: int, records: Difference, *, is_header: bool) -> None:
    connection.execute(
        "INSERT INTO changes (number, first, last, rewound_to, is_header) VALUES (?, ?, ?, ?, ?)",
        (number, records.first, records.last, records.rewound_to, is_header or None),
    )


def trim(connection: sqlite3.Connection) -> None:
    """Forget the oldest changes."""
    connection.execute("DELETE FROM changes WHERE change <= ?", (log_state(connection).last - CHANGES_KEPT,))
