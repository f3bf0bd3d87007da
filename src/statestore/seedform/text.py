"""Reading the seed's form: what a session file says, and where in its bytes each thing stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from statestore.errors import InvalidValue
from statestore.jsontext import compact, joined_members, pretty
from statestore.names import RESERVED_METADATA_KEY
from statestore.records import AGENT, USER, DecodedRecords, RecordArrays, decode_arrays, latest_moment
from statestore.seedform import layout
from statestore.seedform.newest import newest
from statestore.seedform.notes import Columns, Notes, fitting_seqs, next_seq_of, numbering_of, parse_notes
from statestore.seedform.order import NOTHING, RECORDS_A_PART, Order, OrderedRecords
from statestore.seedform.pieces import Edit, Pieces, in_text_order
from statestore.stored import Numbering, Records, SessionFields
from statestore.timestamps import nanoseconds

_TOP_LEVEL_KEY = re.compile(rb'\n  ("(?:[^"\\]|\\.)*"): ')
_USERS_KEY = b'\n  "user_messages": '
_ARRAYS = (layout.USERS, layout.AGENTS)
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


_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_envelope = msgspec.json.Decoder(_Envelope).decode


class Span(NamedTuple):
    """A member of the top-level object: where its line begins, and its value from start to end."""

    line: int
    start: int
    end: int


class SessionText:
    """A session file that was understood: pretty-printed bytes, what they say, and where."""

    __slots__ = (
        "_order",
        "_records",
        "counts",
        "fields",
        "id",
        "latest",
        "layout",
        "metadata",
        "notes",
        "notes_text",
        "pieces",
        "spans",
    )

    def __init__(self, text: bytes) -> None:
        """Raises ``msgspec.DecodeError``, `InvalidValue` or ``UnicodeDecodeError`` for what is not a session."""
        try:
            self._understand(text, usual_spans(text))
        except (msgspec.DecodeError, InvalidValue):
            # Either bad, or merely laid out otherwise than we would; in the pretty form all keys can be found.
            text = pretty(text)
            self._understand(text, _all_spans(text))

    def _understand(self, text: bytes, spans: dict[str, Span]) -> None:
        arrays = [span for key in _ARRAYS if (span := spans.get(key))]
        # Where the arrays decode, and the rest decodes with a number in each one's place, the whole is valid.
        rest = _without(text, arrays)
        rest.decode()
        _check_spans(text, spans, _decode_members(rest))
        envelope = _decode_envelope(rest)
        for moment in (envelope.created_at, envelope.updated_at):
            nanoseconds(moment)
        self.pieces = Pieces.of(text)
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
        if metadata:
            msgspec.json.decode(joined_members({key: bytes(raw) for key, raw in metadata.items()}))
        notes = metadata.pop(RESERVED_METADATA_KEY, None)
        self.notes_text = b"{}" if notes is None else compact(bytes(notes))
        self.notes = Notes() if notes is None else parse_notes(self.notes_text)
        self.metadata = joined_members({key: compact(raw) for key, raw in metadata.items()}) if metadata else b"{}"
        self.layout = layout.layout_of({key: _notable(key, text, span) for key, span in spans.items()})
        self._records: Records | None = None
        self._order: Order | None = None
        users, agents, events = self.records.decoded()
        if any(event.kind in (USER, AGENT) for event in events):
            raise InvalidValue(f"an event is of the kind {USER!r} or {AGENT!r}, which messages and responses are")
        self.counts = (len(users), len(agents), len(events))
        """How many messages, responses and events there are."""
        self.latest = _latest_uncovered(self.notes, (users, agents, events))
        """A moment that no record is later than whose number follows from its timestamp."""

    @property
    def text(self) -> bytes:
        """The whole file."""
        return self.pieces.joined()

    @property
    def records(self) -> Records:
        """The records, decoded when first asked for."""
        records = self._records  # another thread may forget them meanwhile
        if records is None:
            records = self._records = self._read_records()
        return records

    def _read_records(self) -> Records:
        notes = self.notes

        def numbering(decoded: DecodedRecords) -> Numbering:
            return numbering_of(notes, decoded[:3])

        return Records(self._arrays(), numbering)

    def _arrays(self) -> RecordArrays:
        view = memoryview(self.text)
        users, agents = (
            view[span.start : span.end] if span else memoryview(b"[]")
            for span in (self.spans.get(layout.USERS), self.spans.get(layout.AGENTS))
        )
        events = self.notes.events
        return RecordArrays(users, agents, memoryview(b"[]" if events is UNSET else events))

    def forget_records(self) -> None:
        """Keep the bytes, and where in them each record is; the records are decoded again when somebody asks."""
        self._records = None

    def window(self, after: int | None, before: int | None, last: int | None) -> Records:
        """Those that are numbered above ``after`` and below ``before``, at most ``last``; without bounds, all."""
        if last == 0:
            return Records(RecordArrays(), Numbering())
        if after is None and before is None and last is None:
            return self.records
        if self._order is None:
            count = max(last or 0, RECORDS_A_PART)
            self._order = newest(self._arrays(), self.records.decoded()[:3], self.notes, count)
        found = self._placed()
        return (found if found.holds(after, before, last) else self.ordered()).window(after, before, last)

    def ordered(self) -> OrderedRecords:
        """All records, to be read a part at a time."""
        if self._order is not None and any(self._order.left_out):
            self._order = None
        return self._placed()

    def _placed(self) -> OrderedRecords:
        """The records whose places are known, or else all; with those that were added since, which are decoded."""
        arrays = self._arrays()
        order = self._order
        if order is None:
            order = self._order = NOTHING.grown(arrays, self.records.numbering)
            self.forget_records()
        elif order.counts != self.counts:
            added = decode_arrays(order.tails(arrays))
            rest = Notes(next=next_seq_of(self.notes, order.counts))
            order = self._order = order.grown(arrays, numbering_of(rest, added[:3]))
        return OrderedRecords(arrays, order)

    def next_seq(self) -> int:
        """The number that the next record gets."""
        return next_seq_of(self.notes, self.counts)

    def edited(
        self, edits: Sequence[Edit], updated: str, counts: tuple[int, int, int], latest: datetime
    ) -> SessionText:
        """This text after some edits: to its ``updated_at``, and records put at the ends of its lists, later than all.

        Everything else is as it was.
        """
        other = SessionText.__new__(SessionText)
        ordered = in_text_order(edits)
        other.pieces = self.pieces.edited(ordered)
        other.spans = {key: _moved(span, ordered) for key, span in self.spans.items()}
        other.id, other.layout, other.metadata = self.id, self.layout, self.metadata
        other.notes, other.notes_text = self.notes, self.notes_text
        other._records, other._order = None, self._order
        other.fields = replace(self.fields, updated=updated)
        other.counts, other.latest = counts, latest
        return other


def _moved(span: Span, ordered: Sequence[Edit]) -> Span:
    line, start, end = span
    for edit in ordered:
        delta = len(edit.new) - (edit.end - edit.start)
        line += delta if edit.end <= span.line else 0
        start += delta if edit.end <= span.start else 0
        end += delta if edit.end <= span.end else 0
    return Span(line, start, end)


def _latest_uncovered(notes: Notes, columns: Columns) -> datetime:
    latest = latest_moment(*columns)
    covered = fitting_seqs(notes, tuple(map(len, columns)))
    if not any(covered):
        return latest
    return latest_moment(*(column[len(seqs) :] for column, seqs in zip(columns, covered, strict=True)))


def _check_spans(text: bytes, spans: dict[str, Span], members: dict[str, Raw]) -> None:
    """Raise if what was found by its layout is not what the JSON says, or a list does not end as an edit expects."""
    is_right = list(spans) == list(members) and all(
        (bytes(raw) == b"0" and _ends_as_usual(text, spans[key]))
        if key in _ARRAYS
        else bytes(raw) == text[spans[key].start : spans[key].end]
        for key, raw in members.items()
    )
    if not is_right:
        raise msgspec.DecodeError("JSON is not laid out as expected")


def _ends_as_usual(text: bytes, span: Span) -> bool:
    """Whether a list of records is ``[]``, or has its end on a line of its own."""
    return text.endswith(b"}\n  ]", span.start, span.end) or text[span.start : span.end] == b"[]"


def _notable(key: str, text: bytes, span: Span) -> bytes | None:
    """The text of a member that its value alone would not give back: an unknown one, an odd spelling, a ``null``."""
    if key in (layout.USERS, layout.AGENTS, layout.METADATA):
        return None
    written = text[span.start : span.end]
    if layout.is_known(key) and written != b"null" and msgspec.json.encode(_decode_key(written)) == written:
        return None
    return written


def _without(text: bytes, spans: list[Span]) -> bytes:
    pieces: list[bytes] = []
    place = 0
    for span in sorted(spans):
        if text[span.start : span.start + 1] != b"[":
            raise msgspec.ValidationError("Expected `array`, a list of records")
        pieces += (text[place : span.start], b"0")
        place = span.end
    return b"".join((*pieces, text[place:]))


def usual_spans(text: bytes) -> dict[str, Span]:
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
    for place, following in zip(places, [*places[1:], 0], strict=False):
        match = _TOP_LEVEL_KEY.match(text, place)
        if match is None:
            raise msgspec.DecodeError("JSON is malformed: expected an object")
        key = _decode_key(match[1])
        if key in spans:
            raise msgspec.ValidationError(f"Object has the field `{key}` twice")
        end = following - 1 if following else len(text) - 2
        spans[key] = Span(place, match.end(), end)
    return spans
