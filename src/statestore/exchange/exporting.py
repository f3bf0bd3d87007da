"""An export as a stream of bytes, one session at a time, large ones in parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from functools import partial

from statestore.errors import CorruptData, CorruptSession, InvalidName, SessionNotFound
from statestore.exchange.formats import Writer
from statestore.exchange.gathering import (
    Entry,
    LeaveOut,
    Part,
    Unreadable,
    entries,
    session_ids,
    session_parts,
)
from statestore.exchange.making import Make
from statestore.exchange.sources import Source
from statestore.store.reading import understanding

NoteUnreadable = Callable[[str, CorruptData | SessionNotFound], object]
NoteDone = Callable[[str], object]


async def exported(
    source: Source,
    ids: Sequence[str] | None,
    writer: Writer,
    unreadable: NoteUnreadable | None,
    done: NoteDone | None,
    make: Make,
) -> AsyncGenerator[bytes]:
    """The bytes of an export.

    Sessions that cannot be read, and named ones that are not there, are told to ``unreadable``; without it, they are
    errors. Of all sessions, those that were deleted meanwhile are left out.
    """
    leave_out = _leaving_out(unreadable, is_all=ids is None)
    if ids is None:
        async for session_id, error in source.unlisted():
            leave_out(session_id, error)
    contents = await entries(source, ids, leave_out) if writer.has_contents else []
    yield await make(partial(writer.opening, contents))
    async for session_id in _chosen(source, ids, contents, writer):
        async with aclosing(session_parts(source, session_id)) as parts:
            try:
                first = await anext(parts)
            except (CorruptData, SessionNotFound, InvalidName) as error:
                leave_out(session_id, error)
                continue
            head, records = await make(partial(_beginning, writer, first))
            yield head
            yield records
            async for part in parts:
                yield await make(partial(_records, writer, part))
            yield writer.session_end()
        if done is not None:
            done(session_id)
    yield writer.closing()


def _leaving_out(unreadable: NoteUnreadable | None, *, is_all: bool) -> LeaveOut:
    """What becomes of a session that cannot be exported: it is told once, or its error is raised."""
    told: set[str] = set()

    def leave_out(session_id: str, error: Unreadable) -> None:
        if isinstance(error, InvalidName):
            if not is_all:
                raise error
            error = CorruptSession(f"session {session_id} cannot be exported: {error}")
        if session_id in told or (is_all and isinstance(error, SessionNotFound)):
            return
        if unreadable is None:
            raise error
        told.add(session_id)
        unreadable(session_id, error)

    return leave_out


def _beginning(writer: Writer, part: Part) -> tuple[bytes, bytes]:
    with understanding(part.head.id):
        return writer.session(part), writer.records(part.records)


def _records(writer: Writer, part: Part) -> bytes:
    with understanding(part.head.id):
        return writer.records(part.records)


async def _chosen(
    source: Source, ids: Sequence[str] | None, contents: Sequence[Entry], writer: Writer
) -> AsyncIterator[str]:
    if writer.has_contents:
        for entry in contents:
            yield entry.id
    elif ids is not None:
        for session_id in ids:
            yield session_id
    else:
        async for session_id in session_ids(source):
            yield session_id
