"""Reading the seed's form: what a session file says, and where in its bytes each thing stands."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from statestore.errors import InvalidValue
from statestore.jsontext import compact, joined_members, pretty
from statestore.records import DecodedRecords, RecordArrays
from statestore.seedform import layout
from statestore.seedform.notes import Notes, next_seq_of, numbering_of, parse_notes
from statestore.seedform.render import RESERVED_KEY
from statestore.stored import Numbering, Records, SessionFields
from statestore.timestamps import nanoseconds

_TOP_LEVEL_KEY = re.compile(rb'\n  ("(?:[^"\\]|\\.)*"): ')
_USERS_KEY = b'\n  "user_messages": '
_AGENTS_KEY = b'\n  "agent_responses": '
_decode_key = msgspec.json.Decoder(str).decode


class _Envelope(Struct, frozen=True):
    """A session's JSON without its records."""

    id: str
    user_id: str
    created_at: str
    updated_at: str
    active_seed_id: str | None = None
    active_persona_id: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None
    metadata: dict[str, Raw] = {}


_decode_envelope = msgspec.json.Decoder(_Envelope).decode


class Span(NamedTuple):
    """A member of the top-level object: where its line begins, and its value from start to end."""

    line: int
    start: int
    end: int


class SessionText:
    """A session file that was understood: pretty-printed bytes, what they say, and where."""

    __slots__ = ("fields", "id", "layout", "metadata", "notes", "notes_text", "records", "spans", "text")

    def __init__(self, text: bytes) -> None:
        """Raises ``msgspec.DecodeError``, `InvalidValue` or ``UnicodeDecodeError`` for what is not a session."""
        if not text.isascii():
            text.decode()
        try:
            self._understand(text, _usual_spans(text))
        except (msgspec.DecodeError, InvalidValue):
            # Either bad, or merely laid out otherwise than we would; in the pretty form all keys can be found.
            text = pretty(text)
            self._understand(text, _all_spans(text))

    def _understand(self, text: bytes, spans: dict[str, Span]) -> None:
        users, agents = spans.get(layout.USERS), spans.get(layout.AGENTS)
        # Where the arrays decode, and the rest decodes with a number in each one's place, the whole is valid.
        envelope = _decode_envelope(_without(text, [span for span in (users, agents) if span]))
        for moment in (envelope.created_at, envelope.updated_at):
            nanoseconds(moment)
        self.text = text
        self.spans = spans
        self.id = envelope.id
        self.fields = SessionFields(
            envelope.user_id,
            envelope.created_at,
            envelope.updated_at,
            envelope.active_seed_id,
            envelope.active_persona_id,
            envelope.project_id,
            envelope.parent_session_id,
        )
        metadata = envelope.metadata
        notes = metadata.pop(RESERVED_KEY, None)
        self.notes_text = b"{}" if notes is None else bytes(notes)
        self.notes = Notes() if notes is None else parse_notes(notes)
        self.metadata = joined_members({key: compact(raw) for key, raw in metadata.items()}) if metadata else b"{}"
        self.layout = layout.layout_of({key: _notable(key, text, span) for key, span in spans.items()})
        arrays = RecordArrays(
            text[users.start : users.end] if users else b"[]",
            text[agents.start : agents.end] if agents else b"[]",
            self.notes.events_array(),
        )
        self.records = Records(arrays, self._numbering)
        self.records.decoded()

    @property
    def columns(self) -> DecodedRecords:
        """The records."""
        return self.records.decoded()

    def next_seq(self) -> int:
        """The number that the next record gets."""
        return next_seq_of(self.notes, self.columns[:3])

    def _numbering(self) -> Numbering:
        return numbering_of(self.notes, self.columns[:3])


def _notable(key: str, text: bytes, span: Span) -> bytes | None:
    """The text of an unknown member, and of an optional one that is ``null``."""
    if layout.is_known(key):
        return b"null" if key in layout.OPTIONAL and text[span.start : span.end] == b"null" else None
    return text[span.start : span.end]


def _without(text: bytes, spans: list[Span]) -> bytes:
    pieces: list[bytes] = []
    place = 0
    for span in sorted(spans):
        if text[span.start : span.start + 1] != b"[":
            raise msgspec.ValidationError("Expected `array`, a list of records")
        pieces += (text[place : span.start], b"0")
        place = span.end
    return b"".join((*pieces, text[place:]))


def _usual_spans(text: bytes) -> dict[str, Span]:
    """The members of a file with the usual keys in the usual order, found without looking at every line.

    This is a guess that holds for what the seed and we write; the decoding that follows proves it.
    """
    users = text.find(_USERS_KEY, 0, 4096)
    agents = text.rfind(_AGENTS_KEY)
    if users < 0 or agents < users:
        return _all_spans(text)
    if text.startswith(b"[]", agents + len(_AGENTS_KEY)):
        rest = agents + len(_AGENTS_KEY) + 2
    else:
        rest = text.rfind(b'\n  ],\n  "') + 4
    return _spans(text, [*_key_places(text, 0, users), users, agents, *_key_places(text, rest, len(text))])


def _all_spans(text: bytes) -> dict[str, Span]:
    """All members of a pretty-printed object: only its own keys stand on lines indented by two."""
    return _spans(text, _key_places(text, 0, len(text)))


def _key_places(text: bytes, start: int, end: int) -> list[int]:
    return [match.start() for match in _TOP_LEVEL_KEY.finditer(text, start, end)]


def _spans(text: bytes, places: list[int]) -> dict[str, Span]:
    spans: dict[str, Span] = {}
    for place, following in zip(places, [*places[1:], None], strict=True):
        match = _TOP_LEVEL_KEY.match(text, place)
        if match is None:
            raise msgspec.DecodeError("JSON is malformed: expected an object")
        key = _decode_key(match[1])
        if key in spans:
            raise msgspec.ValidationError(f"Object has the field `{key}` twice")
        end = len(text) - 2 if following is None else following - 1
        spans[key] = Span(place, match.end(), end)
    return spans
