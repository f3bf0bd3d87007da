"""The entries of a conversation's log as records, and back. An entry is one message, and names the one before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic_ai.conversation_store import ConversationEntry
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_core import from_json

from statestore.adapters.dialects.pydantic_ai import NAME, records_of
from statestore.adapters.items import aside
from statestore.engine import NewRecord
from statestore.store.async_store import AsyncStateStore
from statestore.store.decoding import decoded_as
from statestore.store.saving import new_record
from statestore.stored import StoredSession


class Link(Struct, frozen=True, omit_defaults=True):
    """What a record tells of its entry beside the message."""

    id: str
    parent: str | None = None
    place: str | None = None
    """The session that the parent lies in, if it is another one."""
    kind: str = "message"


class Entry(Struct, frozen=True):
    """An entry as it is stored."""

    link: Link
    message: bytes
    number: int


class _Carried(Struct, gc=False):
    mark: Raw | UnsetType = msgspec.field(default=UNSET, name=NAME)
    data: Raw | UnsetType = UNSET
    entry: Link | None = None


def records_for(entries: Sequence[ConversationEntry], place: str | None) -> list[NewRecord]:
    """The records that entries become; the parent of the first may lie in another session.

    Messages become JSON as Pydantic AI's own adapter writes them; what has no form in JSON raises.
    """
    items: list[Any] = from_json(ModelMessagesTypeAdapter.dump_json([entry.message for entry in entries]))
    records: list[NewRecord] = []
    for position, (entry, item) in enumerate(zip(entries, items, strict=True)):
        link = Link(entry.id, entry.parent_id, None if position else place, entry.kind)
        first, *asides = records_of(item, entry=msgspec.to_builtins(link))
        records += [new_record(first, entry.id), *map(new_record, asides)]
    return records


def branch_record(left: str | None, to: str | None) -> NewRecord:
    """For people: that the conversation goes on from an earlier entry."""
    return new_record(aside(NAME, "branch", {"from_entry": to, "left": left}))


async def entries_in(store: AsyncStateStore, stored: StoredSession) -> dict[str, Entry]:
    """The entries in what was read of a session, by id. What cannot be read is named in a warning."""
    try:
        carried = decoded_as(stored.records, _Carried)
    except (msgspec.DecodeError, ValueError, RecursionError):
        carried = await store.timeline_as(stored.id, _Carried)
    found: dict[str, Entry] = {}
    for number, one in carried:
        if one.entry is not None and isinstance(one.mark, Raw):
            text = bytes(one.mark)
            if text == b"true" and isinstance(one.data, Raw):
                text = bytes(one.data)
            found[one.entry.id] = Entry(one.entry, text, number)
    return found
