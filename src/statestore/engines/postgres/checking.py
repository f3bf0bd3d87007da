"""Looking at everything in a store, and telling what is wrong. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
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
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.persisting import Attempt
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import transaction
from statestore.stored import Problem


async def check_everything(connection: Connection, attempt: Attempt) -> list[Problem]:
    """All problems, of one state of the store."""
    async with transaction(connection, "ISOLATION LEVEL REPEATABLE READ READ ONLY"):
        found = [problem async for problem in _check_sessions(connection, attempt)]
        attempt.go_on()
        for table, session_id, count in await connection.fetch(SQL["check_strays"]):
            found.append(Problem(f"{table} of session {session_id}", f"{count} rows belong to no session", KEPT))
        return found + [problem async for problem in _check_documents(connection, attempt)]


async def _check_sessions(connection: Connection, attempt: Attempt) -> AsyncIterator[Problem]:
    async for row in connection.cursor(SQL["check_sessions"]):
        attempt.go_on()
        records = await connection.fetch(SQL["check_records"], row[0])
        attempt.go_on()
        for problem in _check_session(f"session {row[0]}", tuple(row), records):
            yield problem


def _check_session(where: str, row: Sequence[Any], records: Sequence[Any]) -> Iterator[Problem]:
    session_id, version, created, updated, age, age_rest, next_seq, *counts, size, joined = row
    metadata = b"{}" if joined is None else b"{%b}" % joined
    found, bodies, last = [0, 0, 0], 0, 0
    for seq, kind, body in records:
        last = seq
        bodies += len(body)
        if kind in (0, 1, 2):
            found[kind] += 1
        yield from _check_record(f"{where}, record {seq}", kind, body)
    if found != counts:
        counted = "{} messages, {} responses and {} events"
        yield Problem(where, f"it has {counted.format(*found)}, and its header says {counted.format(*counts)}", KEPT)
    if len(version) != 16 or version.strip("0123456789abcdef"):
        yield Problem(where, f"its version is {version!r}, which we never give out", KEPT)
    if last >= next_seq:
        yield Problem(where, f"it has a record {last}, and {next_seq} is the next number to be given out", KEPT)
    if size != bodies + len(metadata):
        yield Problem(where, f"its header says {size} bytes, which it does not have", KEPT)
    yield from told(where, _faults_of_texts(session_id, created, updated, (age, age_rest), metadata))


def _check_record(where: str, kind: int, body: bytes) -> Iterator[Problem]:
    if kind not in (0, 1, 2):
        yield Problem(where, f"it is of the kind {kind}, which is none", KEPT)
        return
    yield from told(where, faults_of_record(kind_of_column(kind), body))


def _faults_of_texts(
    session_id: str, created: str, updated: str, age: tuple[int, int], metadata: bytes
) -> Iterator[str]:
    yield from faults_of_id(session_id)
    yield from faults_of_moments(created, updated, is_listed_right=lambda moment: age_of(moment) == age)
    yield from faults_of_metadata(metadata)


async def _check_documents(connection: Connection, attempt: Attempt) -> AsyncIterator[Problem]:
    attempt.go_on()
    async for category, name, kind, body in connection.cursor(SQL["check_documents"]):
        attempt.go_on()
        for problem in told(f"{category}/{name}.{kind}", faults_of_document(category, name, kind, body)):
            yield problem
