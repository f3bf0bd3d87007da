"""The way from an entry back to the first of its history. It may lead from a fork into what it was forked from."""

from __future__ import annotations

import logging
from typing import Final

from pydantic_ai.conversation_store import ConversationEntry
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from statestore.adapters.pydantic_ai.entries import Entry, entries_in
from statestore.adapters.pydantic_ai.finding import Finder
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of

_MARGIN: Final = 4
"""How many records are read for each entry that is wanted, to begin with: some show what another holds."""


async def history(store: AsyncStateStore, finder: Finder, head_id: str, limit: int | None) -> list[ConversationEntry]:
    """The entries up to one, or the last of them; ``LookupError`` where one is missing."""
    found: list[Entry] = []
    entry_id: str | None = head_id
    place = await finder.found(store, head_id)
    window = None if limit is None else limit * _MARGIN
    while entry_id is not None and (limit is None or len(found) < limit):
        entries = {} if place is None else await _entries(store, finder, place, window)
        before = len(found)
        while entry_id in entries and (limit is None or len(found) < limit):
            found.append(entries[entry_id])
            entry_id = entries[entry_id].link.parent
            if found[-1].link.place is not None:
                break
        if len(found) > before:
            place = found[-1].link.place or place
        elif window is not None:
            window = None  # it lies further back
        else:
            raise LookupError(f"entry {entry_id!r} is not stored (any more)")
    found.reverse()
    return _decoded(found, place)


async def _entries(store: AsyncStateStore, finder: Finder, place: str, window: int | None) -> dict[str, Entry]:
    stored = await engine_of(store).read_session(place, last=window)
    if stored is None:
        return {}
    entries = await entries_in(store, stored)
    finder.learn(entries, place)
    return entries


def _decoded(entries: list[Entry], place: str | None) -> list[ConversationEntry]:
    """The entries with their messages. One that cannot be read is left out, and named in a warning."""
    try:
        messages = _messages_of(entries)
    except ValueError:
        return [entry for one in entries for entry in _decoded_alone(one, place)]
    return [_entry_of(entry, message) for entry, message in zip(entries, messages, strict=True)]


def _decoded_alone(entry: Entry, place: str | None) -> list[ConversationEntry]:
    try:
        (message,) = _messages_of([entry])
    except ValueError as error:
        logging.getLogger("statestore").warning(
            "session %s: entry %s (record %d) is no message that Pydantic AI can read, and is left out: %s",
            place, entry.link.id, entry.number, error,
        )  # fmt: skip
        return []
    return [_entry_of(entry, message)]


def _messages_of(entries: list[Entry]) -> list[ModelMessage]:
    return ModelMessagesTypeAdapter.validate_json(b"[" + b",".join(entry.message for entry in entries) + b"]")


def _entry_of(entry: Entry, message: ModelMessage) -> ConversationEntry:
    return ConversationEntry(id=entry.link.id, parent_id=entry.link.parent, message=message)
