"""An export as a stream of bytes, one session at a time, large ones in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

from statestore.engine import Engine
from statestore.errors import CorruptData, SessionNotFound
from statestore.exchange.formats import Writer
from statestore.exchange.gathering import Entry, Part, entries, session_ids, session_parts
from statestore.store.reading import understanding

NoteUnreadable = Callable[[str, CorruptData], object]


async def exported(
    engine: Engine, ids: Sequence[str] | None, writer: Writer, unreadable: NoteUnreadable | None
) -> AsyncGenerator[bytes]:
    """The bytes of an export.

    Of all sessions, those that were deleted meanwhile are left out, and those that cannot be read are told to
    ``unreadable``. Without it, and for sessions that were named, both are errors.
    """
    contents = await entries(engine, ids) if writer.has_contents else []
    yield writer.opening(contents)
    async for session_id in _chosen(engine, ids, contents, writer):
        async with aclosing(session_parts(engine, session_id)) as parts:
            try:
                first = await anext(parts)
            except SessionNotFound:
                if ids is None:
                    continue
                raise
            except CorruptData as error:
                if ids is None and unreadable is not None:
                    unreadable(session_id, error)
                    continue
                raise
            with understanding(session_id):
                head = writer.session(first)
            yield head
            yield _records(writer, first)
            async for part in parts:
                yield _records(writer, part)
            yield writer.session_end()
    yield writer.closing()


def _records(writer: Writer, part: Part) -> bytes:
    with understanding(part.head.id):
        return writer.records(part.records)


async def _chosen(
    engine: Engine, ids: Sequence[str] | None, contents: Sequence[Entry], writer: Writer
) -> AsyncIterator[str]:
    if ids is not None:
        for session_id in ids:
            yield session_id
    elif writer.has_contents:
        for entry in contents:
            yield entry.id
    else:
        async for session_id in session_ids(engine):
            yield session_id
