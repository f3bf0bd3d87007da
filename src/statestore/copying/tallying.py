"""What both stores have: counted, compared and digested item by item."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from statestore.copying.layouts import essence
from statestore.copying.standing import headers_are_equal
from statestore.copying.windows import Pace, ReadsSessions, has_records, windows
from statestore.stored import Document, SessionSummary, StoredRecord, StoredSession

_encode = msgspec.msgpack.Encoder().encode


class Tally:
    """Counts and digests what both stores have."""

    def __init__(self) -> None:
        self.sessions = self.documents = self.records = self.bytes = 0
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The digest of everything so far, in the order it came in."""
        return self._digest.hexdigest()

    async def add_session(self, source: ReadsSessions, target: ReadsSessions, summary: SessionSummary) -> str | None:
        """Read a session from both stores; what is not the same, if anything."""
        compared: int | None = 0
        digest = hashlib.sha256()
        size = count = 0
        head: StoredSession | None = None
        async for window in windows(source, summary.id, Pace.for_session(summary)):
            ours, head = window.stored.records.in_order(), window.stored
            theirs = await target.read_session(summary.id, after=compared, before=window.before)
            if theirs is None:
                return "the target does not have it"
            if not headers_are_equal(head, theirs) or head.next_seq != theirs.next_seq:
                return "its fields or its metadata are not the same"
            records = theirs.records.in_order()
            if ours != records:
                return "its records are not the same"
            compared = None if window.before is None else window.before - 1
            size += _add_records(digest, records)
            count += len(ours)
        if head is None:
            return "it is gone from the source"
        if compared is not None:  # else the target was read to its end
            beyond = await target.read_session(summary.id, after=compared, last=1)
            if beyond is not None and has_records(beyond):
                return "the target has more records"
        digest.update(_encode(("session", head.id, head.fields, head.metadata, essence(head.layout), head.next_seq)))
        self._digest.update(digest.digest())
        self.sessions += 1
        self.records += count
        self.bytes += size + len(head.metadata)
        return None

    def add_document(self, ours: Document | None, theirs: Document | None) -> str | None:
        """Compare a document; what is not the same, if anything."""
        if ours is None:
            return "it is gone from the source"
        if theirs is None:
            return "the target does not have it"
        if ours.body != theirs.body:
            return "its contents are not the same"
        place = ("document", theirs.category, theirs.name, theirs.kind)
        self._digest.update(_encode((*place, hashlib.sha256(theirs.body).digest())))
        self.documents += 1
        self.bytes += len(theirs.body)
        return None


def _add_records(digest: Any, records: list[StoredRecord]) -> int:
    for record in records:
        digest.update(_encode((record.seq, record.kind, record.key, record.body)))
    return sum(len(record.body) for record in records)
