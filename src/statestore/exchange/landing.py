"""Storing what is imported: each session and each document wholly or not at all, and never twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from statestore.copying.layouts import are_alike
from statestore.engine import Change, Engine, PreconditionFailed, PutDocument, Requires
from statestore.errors import CorruptData, InvalidName, InvalidValue, NotSupported
from statestore.jsontext import compact
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.stored import Document, StoredSession

Fate = Literal["imported", "skipped", "refused"]


class Imported(Struct, frozen=True):
    """What became of one item of an import."""

    where: str
    """``session ID`` or ``document CATEGORY/NAME.KIND``."""
    fate: Fate
    """``imported``; ``skipped``, because the very same is there already; or ``refused``: nothing was written of it."""
    reason: str = ""
    """Why it was refused."""
    records: int = 0


async def land_session(
    engine: Engine, stored: StoredSession, objection: Callable[[StoredSession], str | None] | None = None
) -> Imported:
    """Store a session, all of it at once, unless the same is there; refuse it if another has its id.

    ``objection`` tells why a session that is not there yet may not be stored, if it may not.
    """
    where = f"session {stored.id}"
    count = sum(map(len, stored.records.numbering.columns))
    while True:
        try:
            there = await engine.read_session(stored.id)
            with understanding(stored.id):
                difference = None if there is None else _difference_between(stored, there)
        except CorruptData as error:
            return Imported(where, "refused", f"one with this id is there, and cannot be read: {error}")
        if difference is not None:
            return Imported(where, "refused", f"another one with this id is there: {difference}")
        if there is not None:
            return Imported(where, "skipped", records=count)
        reason = None if objection is None else objection(stored)
        if reason is not None:
            return Imported(where, "refused", reason)
        with understanding(stored.id):
            change = creation(stored, is_whole=True)
        refusal = await _refusal(engine, change)
        if refusal is None:
            return Imported(where, "imported", records=count)
        if refusal:
            return Imported(where, "refused", refusal)


async def land_document(engine: Engine, document: Document) -> Imported:
    """Store a document, unless the same is there; refuse it if another is."""
    place = (document.category, document.name, document.kind)
    where = f"document {document.category}/{document.name}.{document.kind}"
    while True:
        try:
            there = await engine.get_document(*place)
        except CorruptData as error:
            return Imported(where, "refused", f"one is there, and cannot be read: {error}")
        if there is not None:
            is_same = there.body == document.body
            return Imported(where, "skipped") if is_same else Imported(where, "refused", "another one is there")
        refusal = await _refusal(engine, PutDocument(*place, document.body, Requires(absent=True)))
        if refusal is None:
            return Imported(where, "imported")
        if refusal:
            return Imported(where, "refused", refusal)


def _difference_between(one: StoredSession, other: StoredSession) -> str | None:
    """What two sessions do not have in common; ``None`` if they are the same."""
    if one.fields != other.fields:
        names = [
            name for name in one.fields.__struct_fields__ if getattr(one.fields, name) != getattr(other.fields, name)
        ]
        return f"it differs in {', '.join(names)}"
    if compact(one.metadata) != compact(other.metadata):
        return "it differs in its metadata"
    if not are_alike(one.layout, other.layout):
        return "it differs in fields that only a newer program knows"
    if one.records.in_order() != other.records.in_order():
        return "it differs in its records"
    return None if one.next_seq == other.next_seq else "it differs in the numbers it has given out"


async def _refusal(engine: Engine, change: Change) -> str | None:
    """Make a change; why it cannot be made, and an empty text if somebody was faster."""
    try:
        await engine.commit([change])
    except PreconditionFailed:
        return ""
    except (InvalidName, InvalidValue, NotSupported) as error:
        return f"{engine.url} cannot hold it: {error}"
    return None
