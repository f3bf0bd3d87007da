"""What happens inside a write transaction: batches are judged one after the other, their writes sent together.

All preconditions are judged here, against what the batches before have made of the sessions, so a batch that
fails has written nothing and needs no savepoint. Appends of all batches become one statement each for records,
sessions and changes.

A session that is written several times while it is known is busy, until somebody tidies up: the indexes of listings
leave it out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from statestore.engine import (
    LABELS,
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    NewSession,
    Outcome,
    PreconditionFailed,
    PutDocument,
)
from statestore.engines.judging import Present, SingleChange, Stored, judge
from statestore.engines.places import LAST_SEQ, beyond, place_of, places_between
from statestore.engines.sqlite.change_log import ChangeLog
from statestore.engines.sqlite.headers import Header
from statestore.engines.sqlite.known import KnownHeaders, OutdatedHeader
from statestore.engines.sqlite.statements import SQL
from statestore.engines.versions import new_version
from statestore.errors import CorruptSession, InvalidValue, StateStoreError
from statestore.jsontext import changed_members
from statestore.records import column_of
from statestore.stored import OPTIONAL_FIELDS

_FIELD_UPDATES = {
    name: f"UPDATE sessions SET {name} = ? WHERE number = ?"  # noqa: S608 - our own names
    for name in (*OPTIONAL_FIELDS, *LABELS)
    if name != "opening"  # which is written with the header
}

BUSY: Final = 3
"""How many writes in a row make a session busy."""


class Transaction:
    """The writes of one transaction that somebody else begins and commits."""

    relies_on_known = False
    """Whether it takes a session for what it was when we wrote it last."""
    bytes = 0
    """How much content was written or deleted: many builds of SQLite overwrite what is deleted with zeros."""

    def __init__(self, cursor: sqlite3.Cursor, known: KnownHeaders) -> None:
        self._execute = cursor.execute
        self._execute_many = cursor.executemany
        self._known = known
        self._headers: dict[str, Header | None] = {}
        self._touched: dict[str, Header] = {}
        self._doomed: list[Header] = []
        self._records: list[tuple[int, int, str]] = []
        self.changes = ChangeLog(cursor)

    def expect(self, batches: Iterable[Batch]) -> None:
        """Get ready for some batches: look up the sessions in one go that they are about, but for those we know."""
        ids: set[str] = set()
        for batch in batches:
            for change in batch:
                if isinstance(change, DeleteSession):
                    self._known.pop(change.id, None)
                    ids.add(change.id)
                elif isinstance(change, ChangeSession):
                    ids.add(change.id)
        unknown = ids - self._known.keys()
        if len(unknown) > 1:
            self._headers.update(dict.fromkeys(unknown))
            for row in self._execute(SQL["headers"], (msgspec.json.encode(list(unknown)).decode(),)):
                self._headers[row[1]] = Header(*row)

    def make(self, batch: Batch) -> list[Outcome]:
        """Make a batch; raises `PreconditionFailed`, and has changed nothing, if it may not be made."""
        try:
            judge(batch, self._find)
        except PreconditionFailed:
            if not self._forget(batch):
                raise
            judge(batch, self._find)
        return list(map(self._apply, batch))

    def _forget(self, batch: Iterable[Change]) -> bool:
        """Have the sessions of a batch looked up, if they were only known; whether there were any."""
        was_known = False
        for change in batch:
            if isinstance(change, (ChangeSession, DeleteSession)):
                header = self._known.pop(change.id, None)
                if header is not None and self._headers.get(change.id) is header and change.id not in self._touched:
                    del self._headers[change.id]
                    was_known = True
        return was_known

    def flush(self) -> None:
        """Send what was gathered."""
        if self._doomed:
            self._flush_doomed()
        if self._records:
            self._execute_many(SQL["insert_record"], self._records)
            self._records = []
        if self._touched:
            self._flush_touched()
        self.changes.flush()

    def _flush_touched(self) -> None:
        touched, self._touched = self._touched, {}
        rows = list(map(Header.row, touched.values()))
        if self._execute_many(SQL["update_session"], rows).rowcount != len(rows):
            raise OutdatedHeader(f"a session is not at the version that was read: one of {list(touched)[:9]}")
        self._known.update(touched)

    # -- looking

    def _find(self, change: SingleChange) -> Stored | None:
        if isinstance(change, ChangeSession):
            return self._header(change.id)
        if isinstance(change, DeleteSession):  # which does not show whether it is as we know it, as a write does
            self._known.pop(change.id, None)
            return self._header(change.id)
        row = self._execute(SQL["document_version"], (change.category, change.name, change.kind)).fetchone()
        return Present(row[0]) if row else None

    def _header(self, session_id: str) -> Header | None:
        if session_id in self._headers:
            return self._headers[session_id]
        header = self._known.get(session_id)
        if header is not None:
            self.relies_on_known = True
        else:
            row = self._execute(SQL["header"], (session_id,)).fetchone()
            header = Header(*row) if row else None
        self._headers[session_id] = header
        return header

    # -- changing

    def _apply(self, change: Change) -> Outcome:
        if isinstance(change, ChangeSession):
            return self._change_session(change)
        if isinstance(change, DeleteSession):
            return self._delete_session(change.id)
        match change:
            case PutDocument(category, name, kind, body):
                before, version = self._find(change), new_version()
                self._execute(SQL["put_document"], (category, name, kind, version, body))
                self.bytes += len(body)
                return Outcome(before.version if before else None, version)
            case DeleteDocument(category, name, kind):
                before = self._find(change)
                self.bytes += self._execute(SQL["size_of_document"], (category, name, kind)).fetchone()[0]
                gone = self._execute(SQL["delete_document"], (category, name, kind)).rowcount
                return Outcome(before.version if before else None, deleted=gone)
            case DeleteCategory(category):
                self.bytes += self._execute(SQL["size_of_category"], (category,)).fetchone()[0]
                return Outcome(None, deleted=self._execute(SQL["delete_category"], (category,)).rowcount)

    def _change_session(self, change: ChangeSession) -> Outcome:
        header = self._headers[change.id]
        if header is None:
            assert change.create is not None
            header = self._create(change.id, change.create, change.updated)
            before, free, is_header = None, 1, True
        else:
            before, free, is_header = header.version, header.next_seq, False
        if change.truncate_after is not None:
            self._truncate(header, change.truncate_after)
        seqs, first, last = self._append(header, change, free) if change.append else ((), None, None)
        if change.set_fields:
            self._set_fields(header, change.set_fields)
            is_header = True
        if change.set_metadata or change.unset_metadata:
            self._change_metadata(header, change)
            is_header = True
        header.move_to(change.updated)
        if change.id not in self._touched:
            self._touched[change.id] = header
            header.stored_version = header.version
        header.version = new_version()
        header.writes += 1
        if header.writes == BUSY:
            self._execute(SQL["set_busy"], (header.number,))
        self.changes.note(header.number, first, last, change.truncate_after, is_header=is_header)
        return Outcome(before, header.version, seqs)

    def _create(self, session_id: str, new: NewSession, updated: str) -> Header:
        self.flush()  # the id may be one that this transaction deletes
        if new.next_seq > LAST_SEQ:
            raise beyond(new.next_seq)
        row = (session_id, new.user_id, new.created, updated, new.next_seq)
        number = self._execute(SQL["insert_session"], row).lastrowid
        assert number is not None
        if new.layout is not None:
            self._execute(SQL["put_layout"], (number, new.layout))
        alternates = int(new.next_seq == 1)
        counts = (0, 0, 0, alternates, len(b"{}"))
        header = Header(number, session_id, new.user_id, "", new.created, updated, new.next_seq, *counts, None)
        self._headers[session_id] = header
        return header

    def _truncate(self, header: Header, after: int) -> None:
        self.flush()
        gone = places_between(header.number, after, None)
        counts = [0, 0, 0]
        for kind, count, size in self._execute(SQL["size_beyond"], gone).fetchall():
            counts[kind] -= count
            header.size -= size
            self.bytes += size
        header.count(*counts)
        header.alternates = 0
        self._execute(SQL["delete_records"], gone)
        self._execute(SQL["delete_keys_after"], (header.number, min(max(after, -1), LAST_SEQ)))

    def _append(
        self, header: Header, change: ChangeSession, free: int
    ) -> tuple[tuple[int, ...], int | None, int | None]:
        """Add records, whose own numbers must be free; the number of each, and the first and the last that is new."""
        seqs: list[int] = []
        counts = [header.users, header.agents, header.events]
        size = 0
        first = last = None
        next_seq = header.next_seq
        base = place_of(header.number, 0)
        for record in change.append:
            key = record.key
            if key is not None and (seq := self._seq_of_key(header, key)) is not None:
                seqs.append(seq)
                continue
            last = seq = next_seq if record.seq is None else record.seq
            if not free <= seq <= LAST_SEQ:
                raise _misplaced(header, seq, free)
            free = seq + 1
            if first is None:
                first = seq
            column = column_of(record.kind)
            counts[column] += 1
            if seq != next_seq or column != (seq - 1) % 2:
                header.alternates = 0
            if seq >= next_seq:
                next_seq = free
            body = record.body
            size += len(body)
            self._records.append((base + seq, column, body.decode()))
            if key is not None:
                self._execute(SQL["insert_key"], (header.number, key, seq))
            if header.opening is None:
                header.opening = record.opening
            seqs.append(seq)
        header.users, header.agents, header.events = counts
        header.next_seq = next_seq
        header.size += size
        self.bytes += size
        return tuple(seqs), first, last

    def _seq_of_key(self, header: Header, key: str) -> int | None:
        row = self._execute(SQL["seq_of_key"], (header.number, key)).fetchone()
        return row[0] if row else None

    def _set_fields(self, header: Header, fields: dict[str, str | None]) -> None:
        for name, value in fields.items():
            if name == "opening":
                header.opening = value
            else:
                self._execute(_FIELD_UPDATES[name], (value, header.number))

    def _change_metadata(self, header: Header, change: ChangeSession) -> None:
        row = self._execute(SQL["metadata"], (header.number,)).fetchone()
        old = row[0].encode() if row else b"{}"
        try:
            new = changed_members(old, change.set_metadata, change.unset_metadata)
        except msgspec.DecodeError as error:
            raise CorruptSession(f"session {header.id}: its metadata are not a JSON object: {error}") from error
        self._execute(SQL["put_metadata"], (header.number, new.decode()))
        header.size += len(new) - len(old)
        self.bytes += len(new)

    def _delete_session(self, session_id: str) -> Outcome:
        header = self._header(session_id)
        if header is None:
            return Outcome(None)
        self._doomed.append(header)
        self.bytes += header.size
        self._headers[session_id] = None
        return Outcome(header.version, deleted=1)

    def _flush_doomed(self) -> None:
        """Delete sessions, in the order in which their records lie in the file."""
        doomed, self._doomed = sorted(self._doomed, key=lambda header: header.number), []
        self.flush()
        for header in doomed:
            self._known.pop(header.id, None)  # it is known if an earlier batch wrote to it
        runs = list(_runs(header.number for header in doomed))
        places = [(place_of(first, 0), place_of(last, LAST_SEQ)) for first, last in runs]
        self._execute_many(SQL["delete_records"], places)
        self.changes.note_gone(runs, len(doomed))
        for statement in ("delete_keys", "delete_extras", "delete_sessions"):
            self._execute_many(SQL[statement], runs)


def _misplaced(header: Header, seq: int, free: int) -> StateStoreError:
    """Why a record cannot have this number."""
    if seq > LAST_SEQ:
        return beyond(seq)
    return InvalidValue(f"session {header.id}: a record asks for number {seq}, and the first free one is {free}")


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers, as the first and the last of each run without a gap."""
    first = last = None
    for number in numbers:
        if first is None or last is None:
            first = number
        elif number != last + 1:
            yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last
