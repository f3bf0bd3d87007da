"""The form of what lies in the trash: a session packed into one document, and a note beside it that tells which one.

Packing keeps everything verbatim, so that a session that is restored is the one that was thrown away, numbers and
idempotency keys included.
"""

from datetime import datetime
from typing import Final
from zlib import crc32

import msgspec
from msgspec import Raw, Struct

from statestore.labels import labels_in, opening_of, project_of, title_of
from statestore.stored import Records, SessionFields, SessionSummary, StoredRecord, StoredSession
from statestore.timestamps import HOUR_NS, moment_of

_LAST_NS: Final = 253_402_300_799_999_999_999
"""The end of the year 9999."""


class Trashed(Struct, frozen=True):
    """A session in the trash."""

    session: SessionSummary
    """What a listing told of it."""
    deleted_ns: int
    until_ns: int

    @property
    def deleted_at(self) -> datetime:
        """When it was thrown away, in UTC."""
        return moment_of(self.deleted_ns)

    @property
    def until(self) -> datetime:
        """How long it can be restored; the next prune after that removes it."""
        return moment_of(self.until_ns)

    @property
    def name(self) -> str:
        """What its documents are called: they sort by when they go."""
        return f"{self.until_ns:021}-{self.deleted_ns:x}{_end_of_name(self.session.id)}"

    @classmethod
    def of(cls, stored: StoredSession, hours: int, now_ns: int) -> "Trashed":
        """A session that is thrown away now and kept for so many hours."""
        return cls(_summary_of(stored), now_ns, min(now_ns + hours * HOUR_NS, _LAST_NS))


def is_over(name: str, now_ns: int) -> bool:
    """Whether what has this name need not be kept any longer."""
    return name[:21] <= f"{now_ns:021}"


def may_be_of(name: str, session_id: str) -> bool:
    """Whether what has this name can be a session with this id."""
    return name.endswith(_end_of_name(session_id))


def _end_of_name(session_id: str) -> str:
    return f"-{crc32(session_id.encode()):08x}"


def _summary_of(stored: StoredSession) -> SessionSummary:
    users, agents, events = stored.records.decoded()
    metadata = msgspec.json.decode(stored.metadata)
    labels = labels_in(metadata, metadata) | {
        "opening": opening_of(users[0].content) if users else None,
        "project_id": stored.fields.project_id,
    }
    return SessionSummary(
        id=stored.id,
        user_id=stored.fields.user_id,
        message_count=len(users),
        created_text=stored.fields.created,
        updated_text=stored.fields.updated,
        response_count=len(agents),
        event_count=len(events),
        active_seed_id=stored.fields.active_seed_id,
        active_persona_id=stored.fields.active_persona_id,
        project_id=project_of(labels),
        parent_session_id=stored.fields.parent_session_id,
        title=title_of(labels),
        size=sum(len(array) for array in stored.records.arrays) + len(stored.metadata),
    )


class _Packed(Struct, array_like=True, forbid_unknown_fields=True):  # what holds more is not restored with less
    id: str
    fields: SessionFields
    next_seq: int
    metadata: Raw
    layout: Raw
    """``null`` if there is none."""
    records: list[tuple[int, str, str | None, Raw]]


_unpack = msgspec.json.Decoder(_Packed).decode


def packed(stored: StoredSession) -> bytes:
    """A whole session as one text."""
    records = [(record.seq, record.kind, record.key, Raw(record.body)) for record in stored.records.in_order()]
    layout = Raw(stored.layout or b"null")
    return msgspec.json.encode(
        _Packed(stored.id, stored.fields, stored.next_seq, Raw(stored.metadata), layout, records)
    )


def unpacked(text: bytes) -> StoredSession:
    """The session that was packed; `msgspec.DecodeError` if this is none."""
    pack = _unpack(text)
    records = [StoredRecord(seq, kind, bytes(body), key) for seq, kind, key, body in pack.records]
    return StoredSession(
        id=pack.id,
        fields=pack.fields,
        records=Records.of(records),
        version=None,
        next_seq=pack.next_seq,
        message_count=sum(record.kind == "user" for record in records),
        metadata=bytes(pack.metadata),
        layout=None if bytes(pack.layout) == b"null" else bytes(pack.layout),
    )
