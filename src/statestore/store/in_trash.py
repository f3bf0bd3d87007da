"""Looking into the trash of a store: which sessions are there, whose they are, and what creates one anew."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final, cast

import msgspec

from statestore.engine import ChangeSession, DocumentQuery, Engine, ReadsSeveral
from statestore.errors import CorruptSession, SessionNotFound
from statestore.names import TRASH
from statestore.store.logs import log
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.stored import DocumentKind, Version
from statestore.trash import Trashed, unpacked

FIRST_PAGE: Final = 500
"""How many documents are listed at first: whoever looks for what is over rarely needs more."""
NOTES: Final = 50
"""How many notes are read at once, so that nobody else waits for long."""


async def names_in_trash(engine: Engine) -> AsyncIterator[str]:
    """The names of all that is there, in the order in which it goes."""
    query = DocumentQuery(TRASH, limit=FIRST_PAGE)
    limit, last = FIRST_PAGE, None
    while page := await engine.list_documents(query):
        for info in page:
            if info.name != last:
                yield info.name
            last = info.name
        limit *= 2  # where a page costs a look at all that is there, they are few
        query = DocumentQuery(TRASH, after=(page[-1].name, page[-1].kind), limit=limit)


async def notes_in_trash(engine: Engine, names: Sequence[str]) -> list[Trashed]:
    """What some names stand for, as far as it can be read."""
    bodies: dict[str, bytes] = {}
    if hasattr(engine, "get_documents"):
        places: list[tuple[str, DocumentKind]] = [(name, "json") for name in names]
        found = await cast("ReadsSeveral", engine).get_documents(TRASH, places)
        bodies |= {document.name: document.body for document in found}
    for name in names:
        if name not in bodies and (document := await engine.get_document(TRASH, name, "json")) is not None:
            bodies[name] = document.body
    notes = [_trashed_in(bodies[name], name) for name in names if name in bodies]
    return [note for note in notes if note is not None]


async def names_of_owner(engine: Engine, owner: str, names: Sequence[str]) -> list[str]:
    """Those names that stand for sessions of an owner, also if they cannot be restored any more."""
    owners = {note.name: note.session.user_id for note in await notes_in_trash(engine, names)}
    return [
        name for name in names if owner == (owners[name] if name in owners else await _owner_in_content(engine, name))
    ]


async def names_of_nobody(engine: Engine) -> list[str]:
    """The names of all that is there and cannot be read, so that nobody can tell whose it is."""
    names = [name async for name in names_in_trash(engine)]
    unread: set[str] = set()
    for start in range(0, len(names), NOTES):
        some = names[start : start + NOTES]
        told = {note.name for note in await notes_in_trash(engine, some)}
        unread.update([name for name in some if name not in told and await _owner_in_content(engine, name) is None])
    return [name async for name in names_in_trash(engine) if name in unread] if unread else []


async def taken_from_trash(engine: Engine, note: Trashed) -> tuple[ChangeSession, Version]:
    """What creates a session anew as it was thrown away, and the version of the content that tells it."""
    document = await engine.get_document(TRASH, note.name, "bin")
    if document is None:
        raise taken_out(note.session.id)
    with understanding(note.session.id):
        thrown = unpacked(document.body)
        change = creation(thrown)
    if (thrown.id, thrown.fields.user_id) != (note.session.id, note.session.user_id):
        raise CorruptSession(f"{TRASH}/{note.name}.bin holds another session than the note beside it tells")
    return change, document.version


def taken_out(session_id: str) -> SessionNotFound:
    """What is told to who comes too late."""
    return SessionNotFound(f"session {session_id} was taken out of the trash by somebody else")


async def _owner_in_content(engine: Engine, name: str) -> str | None:
    """Whose session it is, without a note that tells; ``None`` if it cannot be read either."""
    document = await engine.get_document(TRASH, name, "bin")
    try:
        return None if document is None else unpacked(document.body).fields.user_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log().warning("%s/%s.bin cannot be read, so nobody can tell whose it is: %s", TRASH, name, error)
        return None


def _trashed_in(body: bytes, name: str) -> Trashed | None:
    try:
        trashed = msgspec.json.decode(body, type=Trashed)
        if trashed.name != name:
            raise msgspec.ValidationError(f"it tells of {trashed.name[:80]}")
        return trashed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log().warning("%s/%s.json is left out of the trash: it cannot be read: %s", TRASH, name, error)
        return None
