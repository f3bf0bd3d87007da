"""Reading sessions and documents, each from one snapshot of the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import cast

import msgspec

from statestore.engines.sqlite.places import places_between, seq_of
from statestore.engines.sqlite.statements import SQL
from statestore.errors import CorruptSession, InvalidValue
from statestore.jsontext import members
from statestore.records import DecodedRecords, RecordArrays
from statestore.stored import Document, DocumentInfo, DocumentKind, Numbering, Records, SessionFields, StoredSession
from statestore.timestamps import nanoseconds


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Several statements that see one state of the database."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def read_session(
    connection: sqlite3.Connection, session_id: str, after: int | None, before: int | None, last: int | None
) -> StoredSession | None:
    """One session with the records that are asked for."""
    with snapshot(connection):
        row = connection.execute(SQL["session"], (session_id,)).fetchone()
        if row is None:
            return None
        number, version, next_seq, users, events, *fields = row
        metadata, layout = connection.execute(SQL["extras"], (number,)).fetchone() or ("{}", None)
        places = places_between(number, after, before)
        if last is not None:
            places = _last_of(connection, *places, last)
        records = _read_records(connection, number, *places, count=next_seq - 1, has_events=events > 0)
        if records is None:
            raise CorruptSession(f"session {session_id} has records of no known kind: check() tells which")
    _check_texts(session_id, fields[1], fields[2], metadata)
    return StoredSession(
        id=session_id,
        fields=SessionFields(*fields),
        records=records,
        version=version,
        next_seq=next_seq,
        message_count=users,
        metadata=metadata.encode(),
        layout=layout,
    )


def _check_texts(session_id: str, created: str, updated: str, metadata: str) -> None:
    try:
        nanoseconds(created)
        nanoseconds(updated)
        if metadata != "{}":
            members(metadata.encode())
    except InvalidValue as error:
        raise CorruptSession(f"session {session_id}: {error}") from error
    except msgspec.DecodeError as error:
        raise CorruptSession(f"session {session_id}: its metadata are not a JSON object: {error}") from error


def _last_of(connection: sqlite3.Connection, first: int, last: int, count: int) -> tuple[int, int]:
    """The range of places that holds the last records of another."""
    (place,) = connection.execute(SQL["first_of_last"], (first, last, min(count, 1 << 32))).fetchone()
    return (last + 1 if place is None else place), last


def _read_records(
    connection: sqlite3.Connection, number: int, first: int, last: int, *, count: int, has_events: bool
) -> Records | None:
    """The records in a range of places, joined into arrays by SQLite itself; ``None`` if one is of no known kind.

    ``count`` is how many the session has if none was ever removed and no number skipped.
    """
    query = SQL["bodies" if has_events else "bodies_without_events"]
    users, agents, events, kinds = connection.execute(query, (first, last)).fetchone()
    if kinds is None:
        return Records.of(())
    if kinds.strip("012"):
        return None
    if len(kinds) == count:
        seqs: Sequence[int] = range(1, count + 1)
    else:
        seqs = [seq_of(place) for (place,) in connection.execute(SQL["places"], (first, last))]
        if len(seqs) != len(kinds):
            return None
    keys = dict(connection.execute(SQL["keys"], (number,)).fetchall())
    return Records(RecordArrays(_array(users), _array(agents), _array(events)), _numbering(kinds, seqs, keys))


def _array(joined: bytes | None) -> memoryview:
    return memoryview(b"[%b]" % (joined or b""))


def _numbering(kinds: str, seqs: Sequence[int], keys: dict[int, str]) -> Callable[[DecodedRecords], Numbering]:
    """The numbers of records that follow each other, worked out when somebody asks."""

    def numbering(_: DecodedRecords) -> Numbering:
        columns: tuple[list[int], list[int], list[int]] = ([], [], [])
        for kind, seq in zip(map(int, kinds), seqs, strict=True):
            columns[kind].append(seq)
        return Numbering(*columns, keys)

    return numbering


def get_document(connection: sqlite3.Connection, category: str, name: str, kind: DocumentKind) -> Document | None:
    """One document."""
    row = connection.execute(SQL["document"], (category, name, kind)).fetchone()
    return Document(category, name, kind, *row) if row else None


def list_documents(connection: sqlite3.Connection, category: str) -> list[DocumentInfo]:
    """What a category holds, by name, then kind."""
    rows = connection.execute(SQL["documents"], (category,))
    return [DocumentInfo(category, name, cast("DocumentKind", kind), size) for name, kind, size in rows]


def list_categories(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The categories that hold documents: all, or the named one and those below it."""
    found = [category for (category,) in connection.execute(SQL["categories"])]
    return [category for category in found if not prefix or category == prefix or category.startswith(prefix + "/")]
