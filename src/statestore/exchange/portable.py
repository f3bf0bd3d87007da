"""The lossless forms, ``jsonl`` and ``json``: a session with everything that is stored of it.

Bodies, metadata and unknown fields are embedded as their very text. ``jsonl`` is a line for the session, a line for
each record, and a line that says where the session ends, so that a file that was cut off is noticed; such files may
be joined with ``cat``. ``json`` is one object with the same members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from statestore.exchange.gathering import Entry, Part
from statestore.jsontext import compact
from statestore.stored import StoredRecord, StoredSession

VERSION: Final = 1


class SessionHead(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A session without its records."""

    id: str
    user_id: str
    created_at: str
    updated_at: str
    next_seq: Annotated[int, Meta(ge=1, lt=2**62)]
    """The number that its next record will get."""
    active_seed_id: str | None = None
    active_persona_id: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None
    metadata: Raw | UnsetType = UNSET
    layout: Raw | UnsetType = UNSET
    """Its top-level keys in their order and the unknown ones with their text, where that is out of the ordinary."""


class HeadLine(Struct, forbid_unknown_fields=True):
    """The line that a session begins with."""

    statestore: int
    session: SessionHead


class RecordLine(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A record: its number, its kind, its idempotency key, and its own JSON."""

    seq: Annotated[int, Meta(ge=1, lt=2**62)]
    kind: str
    body: Raw
    key: str | None = None


class EndLine(Struct, forbid_unknown_fields=True):
    """The line that a session ends with: its id again, and how many records there were."""

    end: str
    records: int


class WholeSession(Struct, forbid_unknown_fields=True):
    """A session in the ``json`` form."""

    session: SessionHead
    records: list[Raw]


class WholeExport(Struct, forbid_unknown_fields=True):
    """An export in the ``json`` form."""

    statestore: int
    sessions: list[Raw]


_encode = msgspec.json.Encoder().encode


def head_of(stored: StoredSession) -> SessionHead:
    """A stored session in the form of an export."""
    fields = stored.fields
    return SessionHead(
        id=stored.id,
        user_id=fields.user_id,
        created_at=fields.created,
        updated_at=fields.updated,
        next_seq=stored.next_seq,
        active_seed_id=fields.active_seed_id,
        active_persona_id=fields.active_persona_id,
        project_id=fields.project_id,
        parent_session_id=fields.parent_session_id,
        metadata=Raw(compact(stored.metadata)),
        layout=UNSET if stored.layout is None else Raw(compact(stored.layout)),
    )


def _line_of(record: StoredRecord) -> bytes:
    return _encode(RecordLine(record.seq, record.kind, Raw(record.body), record.key))


class JsonLines:
    """``jsonl``: made to be read and written a line at a time."""

    has_contents = False

    def opening(self, entries: Sequence[Entry]) -> bytes:
        return b""

    def session(self, part: Part) -> bytes:
        self._id, self._count = part.head.id, 0
        return _encode(HeadLine(VERSION, head_of(part.head))) + b"\n"

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        self._count += len(records)
        return b"".join(_line_of(record) + b"\n" for record in records)

    def session_end(self) -> bytes:
        return _encode(EndLine(self._id, self._count)) + b"\n"

    def closing(self) -> bytes:
        return b""


class Json:
    """``json``: one object, a record a line."""

    has_contents = False

    def opening(self, entries: Sequence[Entry]) -> bytes:
        self._before_session = b"\n"
        return b'{"statestore":%d,"sessions":[' % VERSION

    def session(self, part: Part) -> bytes:
        before, self._before_session, self._before_record = self._before_session, b",\n", b"\n"
        return before + b'{"session":' + _encode(head_of(part.head)) + b',"records":['

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        if not records:
            return b""
        before, self._before_record = self._before_record, b",\n"
        return before + b",\n".join(map(_line_of, records))

    def session_end(self) -> bytes:
        return b"]}"

    def closing(self) -> bytes:
        return b"\n]}\n"


def is_export(value: Any) -> bool:
    """Whether a decoded object says that it is an export."""
    return isinstance(value, dict) and "statestore" in value
