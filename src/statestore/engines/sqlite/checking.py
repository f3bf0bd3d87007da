"""Looking at everything in a database, and telling what is wrong. Changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from statestore.engines.inspecting import KEPT, Counted, Row, faults_of_column, faults_of_document, faults_of_row, told
from statestore.engines.places import places_between, seq_of
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.failures import DAMAGED
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.tolerating import damaged_as_bytes
from statestore.stored import Problem


def check_everything(connection: sqlite3.Connection) -> list[Problem]:
    """All problems: SQLite's own check first, and ours if the file can be read at all."""
    with snapshot(connection):
        try:
            damage = [text for (text,) in connection.execute("PRAGMA integrity_check(100)") if text != "ok"]
        except sqlite3.DatabaseError as error:
            damage = [str(error)]
        problems = [Problem("database", text, DAMAGED) for text in damage]
        try:
            with damaged_as_bytes(connection):
                problems += [*_check_sessions(connection), *_check_labels(connection)]
            problems += [*_check_strays(connection), *_check_documents(connection)]
        except sqlite3.DatabaseError as error:
            problems.append(Problem("database", f"it cannot be read to its end: {error}", DAMAGED))
    return problems


def _check_sessions(connection: sqlite3.Connection) -> Iterator[Problem]:
    for row in connection.execute(SQL["check_sessions"]):
        where = f"session {row[1]}"
        try:
            yield from _check_session(connection, where, row)
        except (TypeError, AttributeError, ValueError) as error:  # SQLite's own check tells which value
            yield Problem(where, f"its row makes no sense: {error}", KEPT)


def _check_session(connection: sqlite3.Connection, where: str, row: Sequence[Any]) -> Iterator[Problem]:
    number, session_id, version, created, updated, age, age_rest, next_seq, *rest = row
    *counts, alternates, size, metadata, layout = rest
    found, expected = Counted([0, 0, 0]), True
    for place, kind, body in connection.execute(SQL["check_records"], places_between(number, None, None)):
        found.last = seq_of(place)
        found.bytes += len(body)
        expected = expected and (found.last, kind) == (sum(found.kinds) + 1, sum(found.kinds) % 2)
        if kind in (0, 1, 2):
            found.kinds[kind] += 1
        yield from told(f"{where}, record {found.last}", faults_of_column(kind, body))
    if alternates and not (expected and found.last == next_seq - 1):
        yield Problem(where, "its header says that messages and responses alternate, which they do not", KEPT)
    header = Row(session_id, version, created, updated, (age, age_rest), next_seq, counts, size, metadata, layout)
    yield from told(where, faults_of_row(header, found))


def _check_labels(connection: sqlite3.Connection) -> Iterator[Problem]:
    for session_id, *labels in connection.execute(SQL["check_labels"]):
        for damaged in (label for label in labels if isinstance(label, bytes)):
            yield Problem(f"session {session_id}", f"a text of it is not UTF-8: {damaged[:60]!r}", KEPT)


def _check_strays(connection: sqlite3.Connection) -> Iterator[Problem]:
    for table, number, count in connection.execute(SQL["check_strays"]):
        yield Problem(f"{table} of session number {number}", f"{count} rows belong to no session", KEPT)
    for session_id, key, seq in connection.execute(SQL["check_keys"]):
        yield Problem(f"session {session_id}", f"the key {key!r} is of record {seq}, which is not there", KEPT)


def _check_documents(connection: sqlite3.Connection) -> Iterator[Problem]:
    for category, name, kind, body in connection.execute(SQL["check_documents"]):
        yield from told(f"{category}/{name}.{kind}", faults_of_document(category, name, kind, body))
