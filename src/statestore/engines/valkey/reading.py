"""Reading sessions and documents, each at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from statestore.engine import DocumentQuery
from statestore.engines.rebuilding import PIECE
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import MAX_SEQ
from statestore.engines.valkey.scripts import LIST_DOCUMENTS, READ
from statestore.errors import CorruptSession, InvalidValue
from statestore.jsontext import members
from statestore.records import RecordPieces
from statestore.stored import Document, DocumentInfo, DocumentKind, Numbering, Records, SessionFields, StoredSession
from statestore.timestamps import nanoseconds

PAGE: Final = 5_000
"""How many records are fetched at once at most: meanwhile the server does nothing else."""
PAGE_BYTES: Final = 1_000_000
"""About how many bytes they have, unless one of them has more."""
HEAD: Final = 17
"""How many bytes of a record come before its body: its column, and its number."""
SEPARATOR: Final = b"\xff"
"""What is between two records: no text has this byte."""

_header = msgspec.msgpack.Decoder(list[Any]).decode


async def read_session(
    caller: Caller, keys: Keys, session_id: str, after: int | None, before: int | None, last: int | None
) -> StoredSession | None:
    """One session with the records that are asked for."""
    base = keys.session(session_id)
    bounds = (_bound(after), _bound(None if before is None else max(before, 0)), _bound(last))
    arguments = (base, *bounds, PAGE, PAGE_BYTES)
    while True:
        reply = await caller.run(READ, keys.parts_of(base), *arguments)
        if reply is None:
            return None
        packed, layout, joined, following, final, metadata, seq_of_key = reply
        pieces = [joined]
        header = _header(packed)
        while following <= final:
            rest = await caller.run(READ, keys.parts_of(base), *arguments, header[10], following, final)
            if rest is None:  # it was rewound or deleted meanwhile
                break
            more, following = rest
            pieces.append(more)
        if following > final:
            return _session_of(session_id, header, layout, pieces, metadata, seq_of_key)


async def read_sessions(caller: Caller, keys: Keys, ids: Sequence[str]) -> list[StoredSession]:
    """Those of some sessions that are small and can be read, whole."""
    calls: list[tuple[tuple[str, ...], tuple[str | int, ...]]] = []
    for session_id in ids:
        base = keys.session(session_id)
        calls.append((keys.parts_of(base), (base, *[_bound(None)] * 3, PAGE, PAGE_BYTES)))
    found: list[StoredSession] = []
    for session_id, reply in zip(ids, await caller.run_with_refusals(READ, calls), strict=True):
        if reply is None or isinstance(reply, Exception):
            continue
        packed, layout, joined, following, final, metadata, seq_of_key = reply
        if following > final:
            with suppress(CorruptSession):
                found.append(_session_of(session_id, _header(packed), layout, [joined], metadata, seq_of_key))
    return found


def _bound(number: int | None) -> int:
    return -1 if number is None else min(max(number, -1), MAX_SEQ + 1)


def _session_of(
    session_id: str,
    header: list[Any],
    layout: bytes | None,
    pieces: list[bytes],
    metadata: list[bytes],
    seq_of_key: list[bytes],
) -> StoredSession:
    version, next_seq, users, user_id, created, updated, *fields, _ = header
    try:
        nanoseconds(created)
        nanoseconds(updated)
        text = metadata_text(metadata)
        members(text)
        records = _records_of([record for piece in pieces if piece for record in piece.split(SEPARATOR)], seq_of_key)
    except (InvalidValue, ValueError, TypeError, msgspec.DecodeError) as error:
        raise CorruptSession(f"session {session_id}: {error}; check() tells more") from error
    return StoredSession(
        id=session_id,
        fields=SessionFields(user_id, created, updated, *(None if value is False else value for value in fields)),
        records=records,
        version=version,
        next_seq=int(next_seq),
        message_count=int(users),
        metadata=text,
        layout=layout,
    )


def metadata_text(pairs: list[bytes]) -> bytes:
    """The metadata as a JSON object: their hash, as names and values by turns, brought into its order."""
    if not pairs:
        return b"{}"
    found: list[tuple[int, bytes, bytes]] = []
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        order, _, text = value.partition(b":")
        found.append((int(order), name, text))
    return b"{" + b",".join(name + b":" + text for _, name, text in sorted(found)) + b"}"


def _records_of(found: list[bytes], seq_of_key: list[bytes]) -> Records:
    """The records of a list, in bulk, with the keys that they have."""
    if not found:
        return Records.of_pieces(RecordPieces(), Numbering())
    columns = [record[:1] for record in found]
    first, last = int(found[0][1:HEAD]), int(found[-1][1:HEAD])
    if last - first + 1 == len(found):  # numbers rise, so there is no gap
        seqs: Any = range(first, last + 1)
    else:
        seqs = [int(record[1:HEAD]) for record in found]
    bodies: list[list[bytes]] = []
    numbers: list[list[int]] = []
    for letter in (b"u", b"a", b"e"):
        chosen = [place for place, column in enumerate(columns) if column == letter]
        bodies.append(_joined([found[place] for place in chosen]))
        numbers.append([seqs[place] for place in chosen])
    if sum(map(len, numbers)) != len(found):
        raise ValueError("it has records of no known kind")
    keys = {int(seq): key.decode() for key, seq in zip(seq_of_key[::2], seq_of_key[1::2], strict=True)}
    if keys:
        present = set(seqs)
        keys = {seq: key for seq, key in keys.items() if seq in present}
    return Records.of_pieces(RecordPieces(*bodies), Numbering(*numbers, keys=keys))


def _joined(records: list[bytes]) -> list[bytes]:
    """The bodies of some records, in pieces."""
    return [
        b",".join([record[HEAD:] for record in records[start : start + PIECE]])
        for start in range(0, len(records), PIECE)
    ]


async def get_document(caller: Caller, keys: Keys, category: str, name: str, kind: DocumentKind) -> Document | None:
    """One document."""
    version, body = await caller.call("HMGET", keys.document(category, name, kind), "version", "body")
    return None if version is None or body is None else Document(category, name, kind, body, version.decode())


async def get_documents(
    caller: Caller, keys: Keys, category: str, places: Sequence[tuple[str, DocumentKind]]
) -> list[Document]:
    """Those of some documents of a category that are small and can be read."""
    sizes = await caller.call_with_refusals([("HSTRLEN", keys.document(category, *place), "body") for place in places])
    small = [
        place for place, size in zip(places, sizes, strict=True) if isinstance(size, int) and 0 < size <= PAGE_BYTES
    ]
    commands = [("HMGET", keys.document(category, *place), "version", "body") for place in small]
    found: list[Document] = []
    for place, reply in zip(small, await caller.call_with_refusals(commands), strict=True):
        if isinstance(reply, list) and None not in reply:
            version, body = cast("list[bytes]", reply)
            found.append(Document(category, *place, body, version.decode()))
    return found


def _place_after(name: str, kind: str) -> str:
    """Where a listing of documents goes on; no name has a NUL, but one that is asked for may."""
    before, nul, _ = name.partition("\0")
    return f"({before}\1" if nul else f"({name}\0{kind}"


async def list_documents(caller: Caller, keys: Keys, query: DocumentQuery) -> list[DocumentInfo]:
    """What a category holds, by name, then kind."""
    base = keys.category(query.category)
    start = "-" if query.after is None else _place_after(*query.after)
    left = MAX_SEQ if query.limit is None else query.limit
    found: list[DocumentInfo] = []
    while left > 0:
        page = min(left, PAGE)
        reply = await caller.run(LIST_DOCUMENTS, (base,), base, start, page)
        for member, size in zip(reply[::2], reply[1::2], strict=True):
            name, _, kind = member.decode().partition("\0")
            found.append(DocumentInfo(query.category, name, cast("DocumentKind", kind), size))
        if len(reply) < 2 * page:
            break
        start = b"(" + reply[-2]
        left -= page
    return found
