"""A stored session in the seed's form, whichever engine it comes from."""

from __future__ import annotations

import msgspec

from statestore.jsontext import joined_members, members, pretty
from statestore.names import RESERVED_METADATA_KEY
from statestore.records import bodies_of
from statestore.seedform import layout
from statestore.seedform.notes import LETTERS, Columns, Notes, numbering_of
from statestore.stored import OPTIONAL_FIELDS, Numbering, StoredSession

_encode = msgspec.json.Encoder().encode


def session_json(stored: StoredSession) -> bytes:
    """The session as the file that the Rust program would read: pretty, no newline at the end."""
    records = stored.records
    users, agents, events = records.decoded()
    columns = (users, agents, events)
    notes = notes_for(columns, records.numbering, records.arrays.events, stored.next_seq)
    return pretty(compact_json(stored, with_notes(stored.metadata, notes)))


def compact_json(stored: StoredSession, metadata: bytes) -> bytes:
    """The session's JSON object with the given metadata."""
    fields, arrays = stored.fields, stored.records.arrays
    shape = members(stored.layout) if stored.layout else {}
    values: dict[str, bytes] = {
        layout.ID: _encode(stored.id),
        layout.USER_ID: _encode(fields.user_id),
        layout.CREATED: _encode(fields.created),
        layout.UPDATED: _encode(fields.updated),
    }
    for key, array in ((layout.USERS, arrays.users), (layout.AGENTS, arrays.agents)):
        if stored.layout is None or key in shape or bodies_of(array):
            values[key] = bytes(array)
    for key in OPTIONAL_FIELDS:
        value: str | None = getattr(fields, key)
        if value is not None:
            values[key] = _encode(value)
    if stored.layout is None or layout.METADATA in shape or metadata != b"{}":
        values[layout.METADATA] = metadata
    return joined_members(layout.ordered(values, stored.layout))


def with_notes(metadata: bytes, notes: Notes) -> bytes:
    """A metadata object with our notes as its last member, if there is anything to note."""
    text = notes.to_json()
    return joined_members(members(metadata) | {RESERVED_METADATA_KEY: text}) if text else metadata


def notes_for(columns: Columns, numbering: Numbering, events: memoryview, next_seq: int) -> Notes:
    """The fewest notes from which a reader works out the same numbers and keys."""
    noted_events = msgspec.Raw(bytes(events)) if columns[2] else msgspec.UNSET
    plain = Notes(events=noted_events, keys=_noted_keys(columns, numbering))
    if next_seq == 1 + sum(map(len, columns)) and _same_numbers(numbering_of(plain, columns), numbering):
        return plain
    seqs = (list(numbering.users), list(numbering.agents), list(numbering.events))
    return Notes(events=plain.events, next=next_seq, seqs=seqs, keys=plain.keys)


def _same_numbers(one: Numbering, other: Numbering) -> bool:
    return all(list(getattr(one, name)) == list(getattr(other, name)) for name in ("users", "agents", "events"))


def _noted_keys(columns: Columns, numbering: Numbering) -> dict[str, tuple[str, int, str]]:
    if not numbering.keys:
        return {}
    noted: dict[str, tuple[str, int, str]] = {}
    for letter, column, seqs in zip(LETTERS, columns, numbering.columns, strict=True):
        for place, (seq, record) in enumerate(zip(seqs, column, strict=True)):
            if seq in numbering.keys:
                noted[numbering.keys[seq]] = (letter, place, record.timestamp_text)
    return noted
