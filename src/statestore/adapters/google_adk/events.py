"""Events as JSON, and back; what other frameworks wrote into a session is translated."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from google.adk.events.event import Event
from google.adk.sessions.state import State
from msgspec import UNSET, Raw, Struct, UnsetType
from pydantic import ValidationError
from pydantic_core import from_json

from statestore.adapters.dialects.google_adk import DIALECT, NAME, records_of
from statestore.adapters.google_adk.moments import text_of_seconds
from statestore.adapters.handoff import turns_of
from statestore.engine import NewRecord
from statestore.labels import opening_of
from statestore.records import Event as StoredEvent
from statestore.records import Record, UserMessage, body_of, decode_body, kind_of
from statestore.store.decoding import decoded_as
from statestore.store.reading import understanding
from statestore.stored import StoredSession
from statestore.timestamps import nanoseconds


class Carried(Struct, gc=False):
    """An event as it lies in a record, not yet decoded."""

    mark: Raw | UnsetType = msgspec.field(default=UNSET, name=NAME)
    data: Raw | UnsetType = UNSET


FOREIGN: Final = b""
"""Stands for what ADK did not write."""
Texts = list[tuple[int, bytes]]
"""The JSON of events, or `FOREIGN`, with the numbers of their records."""


class Actions(Struct):
    """Of an event's actions, those that a service looks at."""

    state_delta: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


class Outline(Struct):
    """What is asked of an event before it is decoded whole."""

    id: str = ""
    timestamp: float = 0.0
    actions: Actions = msgspec.field(default_factory=Actions)


outline_of: Final = msgspec.json.Decoder(Outline).decode
event_of: Final = Event.model_validate_json


def text_of_event(event: Event) -> bytes:
    """An event's JSON, as ADK's own services write it, without state that is temporary."""
    delta = event.actions.state_delta
    if any(key.startswith(State.TEMP_PREFIX) for key in delta):
        kept = {key: value for key, value in delta.items() if not key.startswith(State.TEMP_PREFIX)}
        event = event.model_copy(update={"actions": event.actions.model_copy(update={"state_delta": kept})})
    return event.model_dump_json(exclude_none=True).encode()


def new_records(text: bytes, timestamp: float, key: str) -> list[NewRecord]:
    """The records that an event becomes, at its own time; the first, which holds it, has the key."""
    first, *asides = records_of(from_json(text))
    return [_at(timestamp, first, key), *(_at(timestamp, record) for record in asides)]


def _at(timestamp: float, record: Record, key: str | None = None) -> NewRecord:
    """A record as an engine takes it, told at that time. It says so right after its text, or after its data."""
    moment = text_of_seconds(timestamp)
    old, new = (b'"timestamp":"%b"' % told.encode() for told in (record.timestamp_text, moment))
    if isinstance(record, StoredEvent):
        before, _, after = body_of(record).rpartition(old)
    else:
        before, _, after = body_of(record).partition(old)
    opening = opening_of(record.content) if isinstance(record, UserMessage) else None
    return NewRecord(kind_of(record), before + new + after, nanoseconds(moment), key, opening=opening)


def texts_in(stored: StoredSession) -> Texts:
    """The events in what was read of a session; raises ``msgspec.DecodeError`` where a record is none."""
    return texts_of(decoded_as(stored.records, Carried))


def texts_of(carried: Sequence[tuple[int, Carried]]) -> Texts:
    """The events in some records. What only shows something again is none."""
    texts: Texts = []
    for number, one in carried:
        if one.mark.__class__ is UnsetType:
            texts.append((number, FOREIGN))
            continue
        text = bytes(cast("Raw", one.mark))
        if text == b"true":
            text = b"null" if isinstance(one.data, UnsetType) else bytes(one.data)
        if text != b"false":
            texts.append((number, text))
    return texts


def events_in(stored: StoredSession, texts: Texts) -> list[Event]:
    """Events, decoded. One that ADK cannot read is left out, and a warning names it: it hides no other one."""
    events: list[Event] = []
    foreign = _foreign_in(stored) if any(text is FOREIGN for _, text in texts) else {}
    for number, text in texts:
        try:
            if text is FOREIGN:
                events += map(event_of, foreign[number])
            else:
                events.append(event_of(text))
        except ValidationError as error:
            logging.getLogger("statestore").warning(
                "session %s: record %d is no event that ADK can read, and is left out: %s", stored.id, number, error
            )
    return events


def _foreign_in(stored: StoredSession) -> dict[int, list[bytes]]:
    """What ADK did not write, by number, as events with ids and times of their own."""
    found: dict[int, list[bytes]] = {}
    with understanding(stored.id):
        for kept in stored.records.in_order():
            record = decode_body(kept.kind, kept.body)
            if NAME not in record.extra:
                said = {"timestamp": record.timestamp.timestamp()}
                items = DIALECT.write(turns_of(record))
                found[kept.seq] = [
                    msgspec.json.encode({**item, **said, "id": f"{kept.seq}.{place}"})
                    for place, item in enumerate(items)
                ]
    return found
