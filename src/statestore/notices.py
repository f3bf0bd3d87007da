"""What a watcher is told: that a record was added, that a session changed, was rewound or was deleted."""

from msgspec import Struct

from statestore.records import Record, decode_body
from statestore.stored import StoredNotice, What


class Notice(Struct, frozen=True):
    """Something that happened to a session.

    ``what`` is ``record`` (one was added: ``seq`` and ``record``), ``session`` (it was created, or its fields or
    metadata changed), ``rewound`` (records after ``seq`` are gone) or ``deleted``.
    """

    session_id: str
    what: What
    cursor: str
    """Where a watch goes on after this: ``store.watch(after=notice.cursor)``."""
    seq: int | None = None
    kind: str | None = None
    record: Record | None = None


def notice_of(stored: StoredNotice) -> Notice:
    """A notice for users."""
    if stored.record is None:
        return Notice(stored.session_id, stored.what, stored.cursor, stored.seq)
    kind, body = stored.record.kind, stored.record.body
    return Notice(stored.session_id, stored.what, stored.cursor, stored.seq, kind, decode_body(kind, body))
