"""Our notes in a session file, kept verbatim through copies.

The same numbers and keys can be noted in several ways: a file that grew notes less than one that is written at once,
and a newer release may note more. Unless a file's notes are surely those that a copy of it gets, they travel in the
session's layout, as its member ``metadata``: the names that stand before the notes, and the notes themselves without
the events, which travel as records.
"""

from __future__ import annotations

import msgspec

from statestore.jsontext import compact, joined_members, members, pretty
from statestore.names import RESERVED_METADATA_KEY
from statestore.seedform.layout import METADATA
from statestore.seedform.notes import LETTERS, Notes, known_keys, next_seq_of, numbering_of, parse_notes
from statestore.seedform.pieces import Edit
from statestore.seedform.text import SessionText

_EVENTS = "events"
_MARK = f'"{RESERVED_METADATA_KEY}"'.encode()


def layout_with_notes(text: SessionText) -> bytes | None:
    """The layout of a session file, with its notes if a copy might get others."""
    span = text.spans.get(METADATA)
    if span is None:
        return text.layout
    written = text.text[span.start : span.end]
    if _MARK not in written:
        return text.layout
    names = list(members(written))
    if RESERVED_METADATA_KEY not in names:
        return text.layout
    if names[-1] == RESERVED_METADATA_KEY and _are_usual(text):
        return text.layout
    before = dict.fromkeys(names[: names.index(RESERVED_METADATA_KEY)], b"null")
    notes = {name: b"null" if name == _EVENTS else value for name, value in members(text.notes_text).items()}
    shape = members(text.layout) if text.layout else dict.fromkeys(text.spans, b"null")
    return joined_members(shape | {METADATA: joined_members(before | {RESERVED_METADATA_KEY: joined_members(notes)})})


def _are_usual(text: SessionText) -> bool:
    """Whether a session's notes are surely those that a copy gets: no numbers, and the keys in the records' order."""
    notes = text.notes
    if notes.next != 1 or any(notes.seqs) or text.notes_text != (notes.to_json() or b"{}"):
        return False
    if not notes.keys:
        return text.notes_text != b"{}"
    places = [(LETTERS.find(letter), place) for letter, place, _ in notes.keys.values()]
    return places == sorted(places) and len(known_keys(notes, text.records.decoded()[:3])) == len(places)


def with_notes_of(layout: bytes | None, text: SessionText) -> SessionText:
    """A session file that was just rendered, with the notes that came in its layout, if they still say the same."""
    kept = members(layout).get(METADATA, b"null") if layout else b"null"
    if kept == b"null" or METADATA not in text.spans:
        return text
    names = members(kept)
    noted = members(names.pop(RESERVED_METADATA_KEY, b"{}"))
    if _EVENTS in noted:
        noted[_EVENTS] = compact(text.notes.events_array())
    notes = joined_members(noted)
    if not _say_the_same(notes, text):
        return text
    pairs = list(members(text.metadata).items())
    fits = [name for name, _ in pairs[: len(names)]] == list(names)
    pairs.insert(len(names) if fits else len(pairs), (RESERVED_METADATA_KEY, notes))
    span = text.spans[METADATA]
    metadata = pretty(joined_members(dict(pairs))).replace(b"\n", b"\n  ")
    return SessionText(text.pieces.edited([Edit(span.start, span.end, metadata)]).joined())


def _say_the_same(notes: bytes, text: SessionText) -> bool:
    """Whether these notes give a session's records the numbers and keys that they have."""
    try:
        parsed: Notes = parse_notes(notes)
    except msgspec.DecodeError:
        return False
    users, agents, events = text.records.decoded()
    numbering, found = text.records.numbering, numbering_of(parsed, (users, agents, events))
    return (
        parsed.events_array() == text.notes.events_array()
        and next_seq_of(parsed, text.counts) == text.next_seq()
        and found.keys == numbering.keys
        and all(list(getattr(found, name)) == list(getattr(numbering, name)) for name in ("users", "agents", _EVENTS))
    )
