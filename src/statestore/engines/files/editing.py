"""A change to a session, made in the bytes of its file: text is put in, the rest stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from statestore.engine import ChangeSession, NewRecord
from statestore.engines.files.kept_notes import with_notes_of
from statestore.errors import InvalidValue, NotSupported
from statestore.jsontext import changed_members, joined_array, joined_members, members, pretty
from statestore.names import RESERVED_METADATA_KEY
from statestore.records import bodies_of, column_of, decode_body
from statestore.seedform import layout
from statestore.seedform.notes import LETTERS, NOTED, Notes, are_cut, known_keys
from statestore.seedform.pieces import Edit, in_text_order
from statestore.seedform.render import notes_for, session_json
from statestore.seedform.text import SessionText
from statestore.stored import OPTIONAL_FIELDS, Numbering, Records, SessionFields, StoredRecord, StoredSession
from statestore.timestamps import moment_of, nanoseconds

_encode = msgspec.json.Encoder().encode
MAX_SEQ: Final = 2**62 - 2
"""The highest number a record can have: the one after it must be one that notes can tell."""
_NEVER = datetime.min.replace(tzinfo=UTC)


def created(change: ChangeSession) -> tuple[SessionText, tuple[int, ...]]:
    """The text of a session that a change creates, and the numbers of its records."""
    new = change.create
    assert new is not None
    records: list[StoredRecord] = []
    keys: dict[str, int] = {}
    seqs: list[int] = []
    next_seq, free = new.next_seq, 1
    for record in change.append:
        seq = keys.get(record.key, 0) if record.key is not None else 0
        if not seq:
            seq = _number_for(record, next_seq, free, change.id)
            free = seq + 1
            records.append(StoredRecord(seq, record.kind, record.body, record.key))
            next_seq = max(next_seq, seq + 1)
            if record.key is not None:
                keys[record.key] = seq
        seqs.append(seq)
    _check_number(next_seq - 1, change.id)
    fields = {k: v for k, v in change.set_fields.items() if k in OPTIONAL_FIELDS}
    stored = StoredSession(
        id=change.id,
        fields=SessionFields(new.user_id, new.created, change.updated, **fields),
        records=Records.of(records),
        version="",
        next_seq=next_seq,
        message_count=0,
        metadata=changed_members(b"{}", change.set_metadata, change.unset_metadata),
        layout=new.layout,
    )
    return with_notes_of(new.layout, SessionText(session_json(stored))), tuple(seqs)


def _number_for(record: NewRecord, next_seq: int, free: int, session_id: str) -> int:
    """The number of a record: the next one, or its own, if that is free."""
    seq = next_seq if record.seq is None else record.seq
    if seq < free:
        raise InvalidValue(f"session {session_id}: a record asks for number {seq}, and the first free one is {free}")
    _check_number(seq, session_id)
    return seq


def _check_number(seq: int, session_id: str) -> None:
    if seq > MAX_SEQ:
        raise NotSupported(
            f"session {session_id}: a session file has sequence numbers up to {MAX_SEQ}, and {seq} is beyond"
        )


def changed(old: SessionText, change: ChangeSession) -> tuple[SessionText, tuple[int, ...]]:
    """The text after a change, and the numbers of the appended records."""
    if change.truncate_after is not None:
        old = _truncated(old, change.truncate_after)
    fields = {
        name: value
        for name, value in change.set_fields.items()
        if name in OPTIONAL_FIELDS and value != getattr(old.fields, name)
    }
    for name in [name for name, value in fields.items() if value is None or name not in old.spans]:
        old = _with_line_changed(old, name, fields.pop(name))  # one by one, because such edits touch each other
    additions = _Additions(old, change.append)
    edits = additions.edits(old)
    updated = max(old.fields.updated, change.updated, key=nanoseconds)
    if updated is not old.fields.updated:
        span = old.spans[layout.UPDATED]
        edits.append(Edit(span.start, span.end, _encode(change.updated)))
    metadata = changed_members(old.metadata, change.set_metadata, change.unset_metadata)
    has_lists = all(key in old.spans for key in additions.lists)
    if not fields and metadata == old.metadata and additions.notes is None and has_lists:
        return old.edited(edits, updated, additions.counts, additions.latest) if edits else old, additions.seqs
    if metadata != old.metadata or additions.notes is not None:
        edits += _metadata_edits(old, metadata, additions.notes)
    edits += [Edit(old.spans[name].start, old.spans[name].end, _encode(value)) for name, value in fields.items()]
    return SessionText(old.pieces.edited(in_text_order(edits)).joined()), additions.seqs


class _Addition(NamedTuple):
    column: int
    body: bytes


class _Additions:
    """Records on their way into a text: what goes where, which numbers they get, and what must be noted."""

    def __init__(self, old: SessionText, records: Sequence[NewRecord]) -> None:
        self.notes: Notes | None = None
        self.latest = old.latest
        self._new: list[_Addition] = []
        next_seq = old.next_seq()
        is_told_by_time = not are_cut(old.notes, old.counts)  # or the notes would fit again when the lists grow
        seqs: list[int] = []
        keys = self._known_keys(old, records)
        noted_keys = dict(old.notes.keys)
        counts = list(old.counts)
        added: list[tuple[int, int, NewRecord]] = []
        for record in records:
            if record.key is not None and record.key in keys:
                seqs.append(keys[record.key])
                continue
            column = column_of(record.kind)
            seq = _number_for(record, next_seq, next_seq, old.id)
            moment = moment_of(record.timestamp_ns)
            is_told_by_time = is_told_by_time and seq == next_seq and moment > self.latest
            self.latest = moment
            if record.key is not None:
                keys[record.key] = seq
                timestamp = decode_body(record.kind, record.body).timestamp_text
                noted_keys[record.key] = (LETTERS[column], counts[column], timestamp)
            self._new.append(_Addition(column, record.body))
            added.append((column, seq, record))
            counts[column] += 1
            next_seq = max(next_seq, seq + 1)
            seqs.append(seq)
        self.seqs = tuple(seqs)
        self.counts = (counts[0], counts[1], counts[2])
        has_events = any(column == 2 for column, _ in self._new)
        if not is_told_by_time:
            self.notes = self._notes_of_all(old, added, next_seq)
            self.latest = _NEVER
        if has_events or noted_keys != old.notes.keys or self.notes:
            notes = self.notes or old.notes
            events = joined_array([*bodies_of(old.notes.events_array()), *(body for c, body in self._new if c == 2)])
            self.notes = msgspec.structs.replace(
                notes, events=UNSET if events == b"[]" else Raw(events), keys=noted_keys
            )

    @staticmethod
    def _known_keys(old: SessionText, records: Sequence[NewRecord]) -> dict[str, int]:
        if not old.notes.keys or not any(record.key is not None for record in records):
            return {}
        numbering = old.records.numbering
        numbers = numbering.columns
        found = known_keys(old.notes, old.records.decoded()[:3])
        return {key: numbers[column][place] for key, (column, place) in found.items()}

    @staticmethod
    def _notes_of_all(old: SessionText, added: Sequence[tuple[int, int, NewRecord]], next_seq: int) -> Notes:
        """The notes that a session of all these records is created with: numbers where time does not tell them."""
        known = old.records.numbering
        numbers = (list(known.users), list(known.agents), list(known.events))
        users, agents, events = old.records.decoded()
        columns: tuple[list[Any], list[Any], list[Any]] = (list(users), list(agents), list(events))
        for column, seq, record in added:
            numbers[column].append(seq)
            columns[column].append(decode_body(record.kind, record.body))
        return notes_for(columns, Numbering(*numbers), memoryview(b"[]"), next_seq)

    @property
    def lists(self) -> list[str]:
        """The keys of those lists of messages that become longer."""
        columns = {column for column, _ in self._new}
        return [key for column, key in enumerate((layout.USERS, layout.AGENTS)) if column in columns]

    def edits(self, old: SessionText) -> list[Edit]:
        """What to put into the two lists of messages."""
        edits: list[Edit] = []
        for column, key in enumerate((layout.USERS, layout.AGENTS)):
            elements = [_indented(body, 4) for c, body in self._new if c == column]
            if elements:
                edits.append(_array_edit(old, key, b",\n    ".join(elements)))
        return edits


def _array_edit(old: SessionText, key: str, elements: bytes) -> Edit:
    span = old.spans.get(key)
    whole = b"[\n    " + elements + b"\n  ]"
    if span is None:
        return _new_line(old, key, whole)
    if span.end - span.start == len(b"[]"):
        return Edit(span.start, span.end, whole)
    end = span.end - len(b"\n  ]")
    return Edit(end, end, b",\n    " + elements)


def _metadata_edits(old: SessionText, metadata: bytes, notes: Notes | None) -> list[Edit]:
    text = old.notes_text
    if notes is not None:  # what a newer release notes besides stays
        text = changed_members(changed_members(text, {}, NOTED), members(notes.to_json() or b"{}"), ())
    pairs = members(metadata) | ({} if text == b"{}" else {RESERVED_METADATA_KEY: text})
    whole = _indented(joined_members(pairs), 2)
    span = old.spans.get(layout.METADATA)
    return [_new_line(old, layout.METADATA, whole) if span is None else Edit(span.start, span.end, whole)]


def _with_line_changed(old: SessionText, name: str, value: str | None) -> SessionText:
    """The text with a field that was not there, or without one that was."""
    if value is not None:
        edit = _new_line(old, name, _encode(value))
    else:  # with the comma before it, or, of the first key, the one after it
        span, is_first = old.spans[name], name == next(iter(old.spans))
        edit = Edit(span.line, span.end + 1, b"") if is_first else Edit(span.line - 1, span.end, b"")
    return SessionText(old.pieces.edited([edit]).joined())


def _new_line(old: SessionText, key: str, value: bytes) -> Edit:
    keys = list(old.spans)
    place = layout.place_for(key, keys)
    line = b'\n  "' + key.encode() + b'": ' + value
    if place == len(keys):
        end = old.spans[keys[-1]].end
        return Edit(end, end, b"," + line)
    start = old.spans[keys[place]].line
    return Edit(start, start, line + b",")


def _indented(text: bytes, spaces: int) -> bytes:
    return pretty(text).replace(b"\n", b"\n" + b" " * spaces)


def _truncated(old: SessionText, after: int) -> SessionText:
    """The text without the records above a number; the numbers of the others, and the next one, stay."""
    records = old.records.in_order()
    kept = [record for record in records if record.seq <= after]
    if len(kept) == len(records):
        return old
    shorter = StoredSession(
        id=old.id,
        fields=old.fields,
        records=Records.of(kept),
        version="",
        next_seq=old.next_seq(),
        message_count=0,
        metadata=old.metadata,
        layout=old.layout,
    )
    text = SessionText(session_json(shorter))
    others = changed_members(old.notes_text, {}, NOTED)
    if others == b"{}":
        return text
    text.notes_text = changed_members(others, members(text.notes_text), ())
    return SessionText(text.pieces.edited(_metadata_edits(text, text.metadata, None)).joined())
