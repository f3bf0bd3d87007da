"""Session files to begin with, and what must hold of a text that is taken for one: it is stored again unchanged."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Final

import msgspec

from soak.hostile.mutation import mutated, restructured
from statestore import InvalidValue
from statestore.engines.files.kept_notes import layout_with_notes, with_notes_of
from statestore.engines.memory import MemoryEngine
from statestore.host import step
from statestore.seedform.render import session_json
from statestore.seedform.text import SessionText
from statestore.store.reading import session_from
from statestore.store.recreating import creation
from statestore.stored import StoredSession

DATA: Final = Path(__file__).parent.parent.parent / "data"
GOOD: Final = tuple(text for path in sorted(DATA.rglob("sessions/*.json")) if len(text := path.read_bytes()) < 4000)
"""Session files that the Rust program wrote, and odd ones of our own: with notes, keys, unknown fields."""
NO_SESSION: Final = (msgspec.DecodeError, InvalidValue, UnicodeDecodeError, RecursionError)
"""What reading says of a text that is none; the engine makes `CorruptSession` of it."""


def hostile_session(chance: Random) -> bytes:
    """A session file after an accident: to its bytes, or to what it says."""
    good = chance.choice(GOOD)
    if chance.random() < 0.5:
        good = restructured(chance, good)
    return good if chance.random() < 0.4 else mutated(chance, good, GOOD)


def stored_from(text: SessionText) -> StoredSession:
    """What the files engine hands up of a session file."""
    return StoredSession(
        id=text.id,
        fields=text.fields,
        records=text.records,
        version="",
        next_seq=text.next_seq(),
        message_count=text.counts[0],
        metadata=text.metadata,
        layout=layout_with_notes(text),
    )


def check_stays_the_same(text: SessionText) -> None:
    """A session that was read can be loaded, written and read again, and moved to another engine, as what it is."""
    stored = stored_from(text)
    repr(session_from(stored, "file:x").timeline)
    written = session_json(stored)
    again = stored_from(with_notes_of(stored.layout, SessionText(written)))
    _check_same(stored, again)
    engine = MemoryEngine()
    step(engine.commit([creation(stored)]))
    moved = step(engine.read_session(stored.id))
    assert moved is not None
    _check_same(stored, moved)
    assert session_json(moved) == written


def _check_same(one: StoredSession, other: StoredSession) -> None:
    assert other.id == one.id
    assert other.fields == one.fields
    assert other.metadata == one.metadata
    assert other.next_seq == one.next_seq
    assert other.layout == one.layout
    assert other.records.in_order() == one.records.in_order()
