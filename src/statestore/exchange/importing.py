"""Importing: a file that was exported, or a directory that the Rust program wrote, item by item."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Iterable, Iterator
from itertools import chain
from typing import BinaryIO

import msgspec

from statestore.copying.walking import document_pages, document_place, session_pages
from statestore.engine import Engine
from statestore.errors import CorruptData, InvalidName, StoreUnavailable
from statestore.exchange.landing import Imported, land_document, land_session
from statestore.exchange.limits import beyond_limits
from statestore.exchange.parsing import LineReader, sessions_in_document, sessions_in_lines
from statestore.exchange.sources import unlisted
from statestore.names import TRASH, check_category, check_name, check_session_id
from statestore.store.reading import understanding
from statestore.stored import StoredSession


async def imported_stream(engine: Engine, stream: BinaryIO, name: str) -> AsyncGenerator[Imported]:
    """Import what was exported as ``jsonl`` or ``json``; which of the two it is shows at its beginning.

    Anybody may have written such a file, so what no store takes is refused.
    """
    for session in _sessions_in(stream, name):
        yield await land_session(engine, session, beyond_limits)


def check_beginning(beginning: bytes, name: str) -> None:
    """Raise `NotAnExport` if nothing that was exported begins with these bytes; ``b""`` stands for an empty file."""
    reader = LineReader(name)
    for line in io.BytesIO(beginning):
        is_whole = line.endswith(b"\n") and not _is_beginning_of_document(line)
        if not is_whole and line.lstrip().startswith(b"{"):
            return  # what follows has to tell
        reader.read(line)
        if line.strip():
            return
    reader.finish()


def _sessions_in(stream: BinaryIO, name: str) -> Iterator[StoredSession]:
    lines = _lines(stream, name)
    before: list[bytes] = []
    for line in lines:
        before.append(line)
        if line.strip():
            break
    if before and _is_beginning_of_document(before[-1]):
        return sessions_in_document(b"".join(chain(before, lines)), name)
    return sessions_in_lines(chain(before, lines), name)


def _lines(stream: Iterable[bytes], name: str) -> Iterator[bytes]:
    try:
        yield from stream
    except OSError as error:
        raise StoreUnavailable(f"{name} cannot be read: {error.strerror or error}") from error


def _is_beginning_of_document(line: bytes) -> bool:
    """Whether this is no line of ``jsonl``: not a whole object, or one that holds several sessions."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return line.lstrip().startswith(b"{") and b'"session":' not in line[:60]
    return isinstance(value, dict) and "sessions" in value


async def imported_store(engine: Engine, source: Engine) -> AsyncGenerator[Imported]:
    """Import all sessions and documents of another store as they are; what cannot be read there is refused by name."""
    refused: set[str] = set()
    async for page in session_pages(source):
        for summary in page:
            try:
                check_session_id(summary.id)
                stored = await source.read_session(summary.id)
                if stored is not None:
                    with understanding(summary.id):
                        stored.records.in_order()
                    yield await land_session(engine, stored)
            except (CorruptData, InvalidName) as error:
                refused.add(summary.id)
                yield Imported(f"session {summary.id}", "refused", str(error))
    async for session_id, error in unlisted(source):
        if session_id not in refused:
            yield Imported(f"session {session_id}", "refused", str(error))
    async for infos in document_pages(source):
        for info in infos:
            if info.category == TRASH:
                continue  # what was thrown away there stays there
            try:
                check_category(info.category)
                check_name(info.name)
                document = await source.get_document(info.category, info.name, info.kind)
                if document is not None:
                    yield await land_document(engine, document)
            except (CorruptData, InvalidName) as error:
                yield Imported(document_place(info), "refused", str(error))
