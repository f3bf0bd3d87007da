"""Looking at everything in a store, and telling what is wrong. Changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import msgspec

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.places import age_of, kind_of_column
from statestore.engines.postgres.statements import SQL
from statestore.errors import InvalidName, InvalidValue
from statestore.jsontext import members
from statestore.names import check_name, check_session_id, check_stored_category
from statestore.records import decode_body
from statestore.stored import Problem
from statestore.timestamps import nanoseconds

_KEPT: Final = "it is kept as it is; export what can be read, and mend it by hand"


async def check_everything(connection: Connection) -> list[Problem]:
    """All problems, of one state of the store."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        found = [problem async for problem in _check_sessions(connection)]
        for table, session_id, count in await connection.fetch(SQL["check_strays"]):
            found.append(Problem(f"{table} of session {session_id}", f"{count} rows belong to no session", _KEPT))
        return found + [problem async for problem in _check_documents(connection)]


async def _check_sessions(connection: Connection) -> AsyncIterator[Problem]:
    async for row in connection.cursor(SQL["check_sessions"]):
        records = await connection.fetch(SQL["check_records"], row[0])
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
        told = "{} messages, {} responses and {} events"
        yield Problem(where, f"it has {told.format(*found)}, and its header says {told.format(*counts)}", _KEPT)
    if len(version) != 16 or version.strip("0123456789abcdef"):
        yield Problem(where, f"its version is {version!r}, which we never give out", _KEPT)
    if last >= next_seq:
        yield Problem(where, f"it has a record {last}, and {next_seq} is the next number to be given out", _KEPT)
    if size != bodies + len(metadata):
        yield Problem(where, f"its header says {size} bytes, which it does not have", _KEPT)
    yield from _check_texts(where, session_id, created, updated, (age, age_rest), metadata)


def _check_record(where: str, kind: int, body: bytes) -> Iterator[Problem]:
    if kind not in (0, 1, 2):
        yield Problem(where, f"it is of the kind {kind}, which is none", _KEPT)
        return
    try:
        decode_body(kind_of_column(kind), body)
    except (msgspec.DecodeError, InvalidValue, UnicodeDecodeError, RecursionError) as error:
        yield Problem(where, f"it is not a record: {error}", _KEPT)


def _check_texts(
    where: str, session_id: str, created: str, updated: str, age: tuple[int, int], metadata: bytes
) -> Iterator[Problem]:
    try:
        check_session_id(session_id)
    except InvalidName as error:
        yield Problem(where, f"its id breaks the naming rule: {error}", _KEPT)
    try:
        nanoseconds(created)
        if age_of(nanoseconds(updated)) != age:
            yield Problem(where, f"it is listed in a place that is not that of {updated}", _KEPT)
    except InvalidValue as error:
        yield Problem(where, str(error), _KEPT)
    try:
        members(metadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        yield Problem(where, f"its metadata are not a JSON object: {error}", _KEPT)


async def _check_documents(connection: Connection) -> AsyncIterator[Problem]:
    async for category, name, kind, body in connection.cursor(SQL["check_documents"]):
        where = f"{category}/{name}.{kind}"
        try:
            check_stored_category(category)
            check_name(name)
        except InvalidName as error:
            yield Problem(where, f"its name breaks the naming rule: {error}", _KEPT)
        try:
            if kind == "json":
                msgspec.json.decode(body)
            if kind != "bin":
                body.decode()
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield Problem(where, f"it is not {'JSON' if kind == 'json' else 'UTF-8'}: {error}", _KEPT)
