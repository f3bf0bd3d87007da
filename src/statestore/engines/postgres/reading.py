"""Reading sessions and documents, one or several with one statement, and so from one state of the database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final, cast

from statestore.engine import DocumentQuery
from statestore.engines.columns import INT_MAX
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.places import fitted, is_storable, place_before
from statestore.engines.postgres.statements import SQL
from statestore.engines.rebuilding import PIECE, check_texts
from statestore.errors import CorruptSession
from statestore.records import RecordPieces
from statestore.stored import Document, DocumentInfo, DocumentKind, Numbering, Records, SessionFields, StoredSession

SMALL: Final = 1_000_000
"""How many bytes a session or a document has at most that is read together with others."""
_LAST_KIND: Final = "~"
"""Above every kind that there is."""


async def read_session(
    connection: Connection, session_id: str, after: int | None, before: int | None, last: int | None
) -> StoredSession | None:
    """One session with the records that are asked for."""
    if not is_storable(session_id):
        return None
    window = (-1 if after is None else max(fitted(after), -1), INT_MAX if before is None else fitted(before))
    if last is None:
        rows = await connection.fetch(SQL["session"], session_id, *window)
    else:
        rows = await connection.fetch(SQL["session_with_last"], session_id, *window, fitted(last))
    if not rows or rows[0]["numbers"] is None:
        return None
    return _stored(session_id, rows[0], rows[1:])


async def read_sessions(connection: Connection, ids: Sequence[str]) -> list[StoredSession]:
    """Those of some sessions that are small and can be read, whole."""
    rows = await connection.fetch(SQL["small_sessions"], list(filter(is_storable, ids)), SMALL)
    found: list[StoredSession] = []
    for session_id, some in groupby(rows, lambda row: row["id"]):
        header, *records = some
        with suppress(CorruptSession):
            found.append(_stored(session_id, header, records))
    return found


def _stored(session_id: str, header: Row, rows: Sequence[Row]) -> StoredSession:
    next_seq, users = header["numbers"]
    *fields, joined = header["fields"]
    metadata = b"{}" if joined is None else b"{%b}" % joined
    user_id, created, updated = header["texts"]
    check_texts(session_id, created, updated, metadata)
    try:
        texts = [text_of(field) for field in fields]
    except UnicodeDecodeError as error:
        raise CorruptSession(f"session {session_id} has a field that is not UTF-8: check() tells which") from error
    return StoredSession(
        id=session_id,
        fields=SessionFields(user_id, created, updated, *texts),
        records=_records(session_id, rows),
        version=header["key"],
        next_seq=next_seq,
        message_count=users,
        metadata=metadata,
        layout=header["body"],
    )


def text_of(content: bytes | None) -> str | None:
    """A text that is kept as bytes."""
    return None if content is None else content.decode()


def _records(session_id: str, rows: Sequence[Row]) -> Records:
    pieces: list[list[bytes]] = []
    seqs: list[list[int]] = []
    for column in range(3):
        found = [(row[0], row[2]) for row in rows if row[1] == column]
        seqs.append([seq for seq, _ in found])
        pieces.append([b",".join([body for _, body in found[at : at + PIECE]]) for at in range(0, len(found), PIECE)])
    if sum(map(len, seqs)) != len(rows):
        raise CorruptSession(f"session {session_id} has records of no known kind: check() tells which")
    keys = {row[0]: row[3] for row in rows if row[3] is not None}
    return Records.of_pieces(RecordPieces(*pieces), Numbering(seqs[0], seqs[1], seqs[2], keys))


async def get_document(connection: Connection, category: str, name: str, kind: DocumentKind) -> Document | None:
    """One document."""
    if not is_storable(category, name, kind):
        return None
    row = await connection.fetchrow(SQL["document"], category, name, kind)
    return None if row is None else Document(category, name, kind, *row)


async def get_documents(
    connection: Connection, category: str, places: Sequence[tuple[str, DocumentKind]]
) -> list[Document]:
    """Those of some documents of a category that are small."""
    if not is_storable(category):
        return []
    storable = [place for place in places if is_storable(*place)]
    columns = [name for name, _ in storable], [kind for _, kind in storable]
    return [Document(*row) for row in await connection.fetch(SQL["small_documents"], category, *columns, SMALL)]


async def list_documents(connection: Connection, query: DocumentQuery) -> list[DocumentInfo]:
    """What a category holds, by name, then kind."""
    if not is_storable(query.category):
        return []
    values: list[Any] = [query.category, None if query.limit is None else fitted(query.limit)]
    if query.after is None:
        rows = await connection.fetch(SQL["documents"], *values)
    else:
        name, kind = query.after
        after = (name, kind) if is_storable(name) else (place_before(name), _LAST_KIND)
        rows = await connection.fetch(SQL["documents_after"], *values, *after)
    return [DocumentInfo(query.category, name, cast("DocumentKind", kind), size) for name, kind, size in rows]


async def list_categories(connection: Connection, prefix: str) -> list[str]:
    """The categories that hold documents: all, or the named one and those below it."""
    if not is_storable(prefix):
        return []
    return [row[0] for row in await connection.fetch(SQL["categories"], prefix, f"{prefix}/" if prefix else "")]
