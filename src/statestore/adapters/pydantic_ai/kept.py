"""What a session's metadata tell of its conversation: its record, where its ends lie, and who was forked from it.

A conversation that was deleted while forks still need its entries leaves its session behind, without a record: nobody
can load or list it any more, and it goes with the last of its forks.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct, field
from pydantic import TypeAdapter
from pydantic_ai.conversation_store import ConversationRecord

from statestore.adapters.conversations import FRAMEWORK
from statestore.adapters.dialects.pydantic_ai import NAME
from statestore.adapters.identifiers import birth_metadata
from statestore.jsontext import json_text
from statestore.store.reading import understanding
from statestore.stored import StoredSession

FORKS: Final = f"{NAME} forks"
_records: Final = TypeAdapter(ConversationRecord)


class Kept(Struct, frozen=True):
    """A conversation's record as JSON, and what is asked of it often."""

    revision: str
    record: Raw
    scope: str | None = None
    head: str | None = None
    places: dict[str, str] = field(default_factory=dict[str, str])
    """Ends of the conversation, its head and the branches it left, that lie in other sessions."""


class Held(Struct, frozen=True):
    """Of a session's metadata, what Pydantic AI put there."""

    framework: Any = field(default=None, name=FRAMEWORK)
    kept: Kept | None = field(default=None, name=NAME)
    forks: list[str] = field(default_factory=list[str], name=FORKS)
    """The sessions whose histories lead through this one."""

    @property
    def is_ours(self) -> bool:
        """Whether a conversation of Pydantic AI is, or was, kept here."""
        return self.framework == NAME


def held_in(stored: StoredSession) -> Held:
    """What a session tells of its conversation."""
    with understanding(stored.id):
        return msgspec.json.decode(stored.metadata, type=Held)


def record_in(kept: Kept) -> ConversationRecord:
    """A conversation's record."""
    return _records.validate_json(bytes(kept.record))


def metadata_for(record: ConversationRecord, places: dict[str, str]) -> dict[str, bytes]:
    """The metadata that tell of a record."""
    text = Raw(_records.dump_json(record))
    kept = {
        "revision": record.revision,
        "scope": record.scope,
        "head": record.head_id,
        "places": {entry: place for entry, place in places.items() if entry in (record.head_id, *record.branches)},
        "record": msgspec.json.decode(text),
    }
    return {NAME: json_text(kept, "the record")}


def birth_metadata_for(conversation_id: str) -> dict[str, bytes]:
    """What the session of a conversation is made with."""
    birth = {FRAMEWORK: NAME, **birth_metadata(conversation_id)}
    return {key: json_text(value, key) for key, value in birth.items()}
