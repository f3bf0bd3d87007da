"""Reading sessions and documents, each from one snapshot of the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

from statestore.engines.sqlite.places import places_between, seq_of
from statestore.engines.sqlite.statements import SQL
from statestore.records import DecodedRecords, RecordArrays
from statestore.stored import Document, DocumentInfo, DocumentKind, Numbering, Records, SessionFields, StoredSession


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
        number, version, next_seq, users, *fields = row
        metadata, layout = connection.execute(SQL["extras"], (number,)).fetchone() or ("{}", None)
        records = _read_records(connection, number, *places_between(number, after, before), last)
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


def _read_records(connection: sqlite3.Connection, number: int, first: int, last: int, limit: int | None) -> Records:
    """The records in a range of places, of these the last ones, joined into arrays by SQLite itself."""
    if limit is None:
        row = connection.execute(SQL["bodies"], (first, last)).fetchone()
    else:
        row = connection.execute(SQL["last_bodies"], (first, last, min(limit, 1 << 32))).fetchone()
    users, agents, events, kinds, lowest, highest = row
    if kinds is None:
        return Records.of(())
    keys = dict(connection.execute(SQL["keys"], (number,)).fetchall())
    places: range | list[int] = range(lowest, highest + 1)
    if len(places) != len(kinds):  # some were removed, or numbers were skipped
        places = [place for (place,) in connection.execute(SQL["places"], (lowest, highest))]
    return Records(RecordArrays(_array(users), _array(agents), _array(events)), _numbering(kinds, places, keys))


def _array(joined: bytes | None) -> memoryview:
    return memoryview(b"[%b]" % (joined or b""))


def _numbering(kinds: str, places: range | list[int], keys: dict[int, str]) -> Callable[[DecodedRecords], Numbering]:
    """The numbers of records that follow each other, worked out when somebody asks."""

    def numbering(_: DecodedRecords) -> Numbering:
        columns: tuple[list[int], list[int], list[int]] = ([], [], [])
        for kind, place in zip(map(int, kinds), places, strict=True):
            columns[kind].append(seq_of(place))
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
