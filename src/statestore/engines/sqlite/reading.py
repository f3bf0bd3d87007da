"""Reading sessions and documents, each from one snapshot of the database."""

from __future__ import annotations

import sqlite3
from itertools import product
from typing import Final, cast

from statestore.engine import DocumentQuery
from statestore.engines.places import number_of, places_between, seq_of
from statestore.engines.rebuilding import PIECE, check_texts
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.statements import SQL
from statestore.errors import CorruptDocument, CorruptSession
from statestore.records import RecordPieces
from statestore.stored import Document, DocumentInfo, DocumentKind, Numbering, Records, SessionFields, StoredSession

_NO_LIMIT: Final = 2**62

_SOUND: Final = frozenset(
    (int, str, int, int, int, str, str, str, *fields, str, layout)
    for *fields, layout in product(*[(str, type(None))] * 4, (bytes, type(None)))
)
"""The types that the values of a session's row may have, and its metadata and its layout."""


def read_session(
    connection: sqlite3.Connection, session_id: str, after: int | None, before: int | None, last: int | None
) -> StoredSession | None:
    """One session with the records that are asked for."""
    with snapshot(connection):
        row = connection.execute(SQL["session"], (session_id,)).fetchone()
        if row is None:
            return None
        number, version, next_seq, users, alternates, *fields = row
        metadata, layout = connection.execute(SQL["extras"], (number,)).fetchone() or ("{}", None)
        if tuple(map(type, (*row, metadata, layout))) not in _SOUND:
            raise CorruptSession(f"session {session_id}: a value in its row is of the wrong type: check() tells which")
        places = places_between(number, after, before)
        if alternates and after is None and before is None and last is None:
            records = _read_exchanges(connection, *places, next_seq)
        else:
            if last is not None:
                places = _last_of(connection, *places, last)
            records = _read_records(connection, *places)
        if records is None:
            raise CorruptSession(f"session {session_id} has records of no known kind: check() tells which")
    content = metadata.encode()
    check_texts(session_id, fields[1], fields[2], content)
    return StoredSession(
        id=session_id,
        fields=SessionFields(*fields),
        records=records,
        version=version,
        next_seq=next_seq,
        message_count=users,
        metadata=content,
        layout=layout,
    )


def _last_of(connection: sqlite3.Connection, first: int, last: int, count: int) -> tuple[int, int]:
    """The range of places that holds the last records of another."""
    (place,) = connection.execute(SQL["first_of_last"], (first, last, min(count, _NO_LIMIT))).fetchone()
    return (last + 1 if place is None else place), last


def _read_exchanges(connection: sqlite3.Connection, first: int, last: int, next_seq: int) -> Records:
    """All records of a session in which messages and responses alternate, so that their numbers are known."""
    ranges = [(start, min(start + PIECE - 1, last)) for start in range(first, first + next_seq, PIECE)]
    keys = _keys(connection, first, last)
    numbering = Numbering(range(1, next_seq, 2), range(2, next_seq, 2), (), keys)
    return Records.of_pieces(_pieces(connection, ranges), numbering)


def _read_records(connection: sqlite3.Connection, first: int, last: int) -> Records | None:
    """The records in a range of places; ``None`` if one is of no known kind."""
    found = connection.execute(SQL["kinds"], (first, last)).fetchall()
    columns: tuple[list[int], list[int], list[int]] = ([], [], [])
    for place, kind in found:
        if kind not in (0, 1, 2):
            return None
        columns[kind].append(seq_of(place))
    ranges = [(piece[0][0], piece[-1][0]) for at in range(0, len(found), PIECE) if (piece := found[at : at + PIECE])]
    return Records.of_pieces(_pieces(connection, ranges), Numbering(*columns, _keys(connection, first, last)))


def _keys(connection: sqlite3.Connection, first: int, last: int) -> dict[int, str]:
    """The idempotency keys of the records in a range of places of one session."""
    if first > last:
        return {}
    return dict(connection.execute(SQL["keys"], (number_of(first), seq_of(first), seq_of(last))).fetchall())


def _pieces(connection: sqlite3.Connection, ranges: list[tuple[int, int]]) -> RecordPieces:
    """The bodies in some ranges of places, kind by kind, joined by SQLite itself."""
    joined = [bodies for places in ranges for bodies in _joined(connection, *places)]
    return RecordPieces(*([piece for piece in column if piece] for column in zip(*joined, strict=True)))


def _joined(connection: sqlite3.Connection, first: int, last: int) -> list[tuple[bytes | None, ...]]:
    """The bodies in a range of places; in two parts, or more, if SQLite cannot make one text of so many."""
    try:
        return [connection.execute(SQL["bodies"], (first, last)).fetchone()]
    except sqlite3.DataError:
        if first == last:
            raise
    middle = (first + last) // 2
    return [*_joined(connection, first, middle), *_joined(connection, middle + 1, last)]


def get_document(connection: sqlite3.Connection, category: str, name: str, kind: DocumentKind) -> Document | None:
    """One document."""
    row = connection.execute(SQL["document"], (category, name, kind)).fetchone()
    if row and tuple(map(type, row)) != (bytes, str):
        raise CorruptDocument(f"{category}/{name}.{kind} holds what is no document: check() tells more")
    return Document(category, name, kind, *row) if row else None


def list_documents(connection: sqlite3.Connection, query: DocumentQuery) -> list[DocumentInfo]:
    """What a category holds, by name, then kind."""
    limit = _NO_LIMIT if query.limit is None else min(query.limit, _NO_LIMIT)
    rows = connection.execute(SQL["documents"], (query.category, *(query.after or ("", "")), limit))
    return [DocumentInfo(query.category, name, cast("DocumentKind", kind), size) for name, kind, size in rows]


def list_categories(connection: sqlite3.Connection, prefix: str) -> list[str]:
    """The categories that hold documents: all, or the named one and those below it."""
    found = [category for (category,) in connection.execute(SQL["categories"])]
    return [category for category in found if not prefix or category == prefix or category.startswith(prefix + "/")]
