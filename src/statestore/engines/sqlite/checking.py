"""Looking at everything in a database, and telling what is wrong. Changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from statestore.engines.columns import age_of, kind_of_column
from statestore.engines.inspecting import (
    KEPT,
    faults_of_document,
    faults_of_id,
    faults_of_metadata,
    faults_of_moments,
    faults_of_record,
    told,
)
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.places import seq_of
from statestore.engines.sqlite.statements import SQL
from statestore.stored import Problem

_DAMAGED = "restore a backup, or save what can be read: sqlite3 FILE .recover"


def check_everything(connection: sqlite3.Connection) -> list[Problem]:
    """All problems: SQLite's own check first, and ours if the file can be read at all."""
    with snapshot(connection):
        try:
            damage = [text for (text,) in connection.execute("PRAGMA integrity_check(100)") if text != "ok"]
        except sqlite3.DatabaseError as error:
            damage = [str(error)]
        problems = [Problem("database", text, _DAMAGED) for text in damage]
        try:
            problems += [*_check_sessions(connection), *_check_strays(connection), *_check_documents(connection)]
        except sqlite3.DatabaseError as error:
            problems.append(Problem("database", f"it cannot be read to its end: {error}", _DAMAGED))
    return problems


def _check_sessions(connection: sqlite3.Connection) -> Iterator[Problem]:
    for row in connection.execute(SQL["check_sessions"]):
        where = f"session {row[1]}"
        try:
            yield from _check_session(connection, where, row)
        except (TypeError, AttributeError, ValueError) as error:  # SQLite's own check tells which value
            yield Problem(where, f"its row makes no sense: {error}", KEPT)


def _check_session(connection: sqlite3.Connection, where: str, row: Sequence[Any]) -> Iterator[Problem]:
    number, session_id, version, created, updated, age, age_rest, next_seq, *counts, alternates, size, metadata = row
    found, bodies, last, expected = [0, 0, 0], 0, 0, True
    for place, kind, body in connection.execute(SQL["check_records"], (number << 32, (number + 1) << 32)):
        last = seq_of(place)
        bodies += len(body.encode())
        expected = expected and (last, kind) == (sum(found) + 1, sum(found) % 2)
        if kind in (0, 1, 2):
            found[kind] += 1
        yield from _check_record(f"{where}, record {last}", kind, body)
    if found != counts:
        counted = "{} messages, {} responses and {} events"
        yield Problem(where, f"it has {counted.format(*found)}, and its header says {counted.format(*counts)}", KEPT)
    if alternates and not (expected and last == next_seq - 1):
        yield Problem(where, "its header says that messages and responses alternate, which they do not", KEPT)
    if len(version) != 16 or version.strip("0123456789abcdef"):
        yield Problem(where, f"its version is {version!r}, which we never give out", KEPT)
    if last >= next_seq:
        yield Problem(where, f"it has a record {last}, and {next_seq} is the next number to be given out", KEPT)
    if size != bodies + len((metadata or "{}").encode()):
        yield Problem(where, f"its header says {size} bytes, which it does not have", KEPT)
    yield from told(where, _faults_of_texts(session_id, created, updated, (age, age_rest), (metadata or "{}").encode()))


def _check_record(where: str, kind: int, body: str) -> Iterator[Problem]:
    if kind not in (0, 1, 2):
        yield Problem(where, f"it is of the kind {kind}, which is none", KEPT)
        return
    yield from told(where, faults_of_record(kind_of_column(kind), body.encode()))


def _faults_of_texts(
    session_id: str, created: str, updated: str, age: tuple[int, int], metadata: bytes
) -> Iterator[str]:
    yield from faults_of_id(session_id)
    yield from faults_of_moments(created, updated, is_listed_right=lambda moment: age_of(moment) == age)
    yield from faults_of_metadata(metadata)


def _check_strays(connection: sqlite3.Connection) -> Iterator[Problem]:
    for table, number, count in connection.execute(SQL["check_strays"]):
        yield Problem(f"{table} of session number {number}", f"{count} rows belong to no session", KEPT)
    for session_id, key, seq in connection.execute(SQL["check_keys"]):
        yield Problem(f"session {session_id}", f"the key {key!r} is of record {seq}, which is not there", KEPT)


def _check_documents(connection: sqlite3.Connection) -> Iterator[Problem]:
    for category, name, kind, body in connection.execute(SQL["check_documents"]):
        yield from told(f"{category}/{name}.{kind}", faults_of_document(category, name, kind, body))
