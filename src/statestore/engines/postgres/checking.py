"""Looking at everything in a store, and telling what is wrong. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from statestore.engine import LABELS
from statestore.engines.inspecting import KEPT, Counted, Row, faults_of_column, faults_of_document, faults_of_row, told
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.driver import Row as ServerRow
from statestore.engines.postgres.persisting import Attempt
from statestore.engines.postgres.reading import text_of
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import ONE_STATE, transaction
from statestore.stored import OPTIONAL_FIELDS, Problem

GROUP: Final = 100
GROUP_BYTES: Final = 1_000_000
"""How many sessions are looked at together, and about how many bytes; a session that has more is alone."""


async def check_everything(connection: Connection, attempt: Attempt) -> list[Problem]:
    """All problems, of one state of the store."""
    async with transaction(connection, ONE_STATE):
        found = [problem async for problem in _check_sessions(connection, attempt)]
        attempt.go_on()
        for table, session_id, count in await connection.fetch(SQL["check_strays"]):
            found.append(Problem(f"{table} of session {session_id}", f"{count} rows belong to no session", KEPT))
        return found + [problem async for problem in _check_documents(connection, attempt)]


async def _check_sessions(connection: Connection, attempt: Attempt) -> AsyncIterator[Problem]:
    group: list[ServerRow] = []
    room = GROUP_BYTES
    async for row in connection.cursor(SQL["check_sessions"]):
        attempt.go_on()
        if group and (len(group) == GROUP or row["size"] > room):
            for problem in await _check_group(connection, attempt, group):
                yield problem
            group, room = [], GROUP_BYTES
        group.append(row)
        room -= row["size"]
    for problem in await _check_group(connection, attempt, group):
        yield problem


async def _check_group(connection: Connection, attempt: Attempt, group: Sequence[ServerRow]) -> list[Problem]:
    """What is wrong with some sessions, whose records are read with one statement."""
    rows = await connection.fetch(SQL["check_records"], [row["id"] for row in group])
    attempt.go_on()
    records = {session_id: list(some) for session_id, some in groupby(rows, lambda row: row["id"])}
    return [
        problem
        for row in group
        for problem in _check_session(f"session {row['id']}", tuple(row), records.get(row["id"], ()))
    ]


def _check_session(where: str, row: Sequence[Any], records: Sequence[Any]) -> Iterator[Problem]:
    session_id, version, created, updated, age, age_rest, next_seq, *counts, size, joined, layout, labels = row
    metadata = b"{}" if joined is None else b"{%b}" % joined
    found = Counted([0, 0, 0])
    for seq, kind, body, _ in records:
        found.last = seq
        found.bytes += len(body)
        if kind in (0, 1, 2):
            found.kinds[kind] += 1
        yield from told(f"{where}, record {seq}", faults_of_column(kind, body))
    header = Row(session_id, version, created, updated, (age, age_rest), next_seq, counts, size, metadata, layout)
    yield from told(where, faults_of_row(header, found))
    yield from told(where, _faults_of_labels(labels))


def _faults_of_labels(labels: Sequence[bytes | None]) -> Iterator[str]:
    for column, label in zip((*OPTIONAL_FIELDS, *LABELS), labels, strict=True):
        try:
            text_of(label)
        except UnicodeDecodeError as error:
            yield f"its {column} is not UTF-8: {error}"


async def _check_documents(connection: Connection, attempt: Attempt) -> AsyncIterator[Problem]:
    attempt.go_on()
    async for category, name, kind, body in connection.cursor(SQL["check_documents"]):
        attempt.go_on()
        for problem in told(f"{category}/{name}.{kind}", faults_of_document(category, name, kind, body)):
            yield problem
