"""From the text of an export back to sessions. What is not an export is refused with the line and the reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Raw

from statestore.errors import InvalidName, InvalidValue, StateStoreError
from statestore.exchange.foreign import check_is_not_foreign
from statestore.exchange.portable import (
    VERSION,
    EndLine,
    HeadLine,
    RecordLine,
    SessionHead,
    WholeExport,
    WholeSession,
    is_export,
)
from statestore.jsontext import check_label, compact, joined_members, members
from statestore.names import RESERVED_METADATA_KEY, check_session_id
from statestore.records import AGENT, USER, Event, decode_body
from statestore.stored import Records, SessionFields, StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

T = TypeVar("T")
_BYTE: Final = re.compile(r" \(byte (\d+)\)")
_WRONG: Final = (msgspec.DecodeError, InvalidName, InvalidValue, UnicodeDecodeError, RecursionError)


class NotAnExport(StateStoreError, ValueError):
    """What should be imported is not an export, or not all of one; the message names the line and the reason."""

    def __init__(self, name: str, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"{name}, line {line}: {reason}")


def sessions_in_lines(lines: Iterable[bytes], name: str) -> Iterator[StoredSession]:
    """The sessions of a ``jsonl`` export, each as soon as it was read to its end."""
    reader = LineReader(name)
    for line in lines:
        session = reader.read(line)
        if session is not None:
            yield session
    reader.finish()


def sessions_in_document(text: bytes, name: str) -> Iterator[StoredSession]:
    """The sessions of a ``json`` export."""
    try:
        text.decode()
        export = msgspec.json.decode(text, type=WholeExport)
        _check_version(export.statestore)
    except _WRONG as error:
        raise NotAnExport(name, _line_at(text, _byte_in(error, text)), _reason(error, text)) from error
    place = 0

    def not_an_export(error: Exception, what: str = "") -> NotAnExport:  # lines are counted only when one is told
        return NotAnExport(name, _line_at(text, place), what + _reason(error))

    for raw in export.sessions:
        place = max(text.find(bytes(raw), place), 0)
        try:
            session = msgspec.json.decode(raw, type=WholeSession)
        except _WRONG as error:
            raise not_an_export(error, "this is no session: ") from error
        try:
            draft = _Draft(session.session)
        except _WRONG as error:
            raise not_an_export(error) from error
        for body in session.records:
            place = max(text.find(bytes(body), place), place)
            try:
                draft.add(msgspec.json.decode(body, type=RecordLine))
            except _WRONG as error:
                raise not_an_export(error, "this is no record: ") from error
        try:
            finished = draft.finished()
        except _WRONG as error:
            raise not_an_export(error) from error
        yield finished


class LineReader:
    """Takes the lines of a ``jsonl`` export one by one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._number = 0
        self._draft: _Draft | None = None

    def read(self, line: bytes) -> StoredSession | None:
        """Take a line; the session that ends with it, if one does."""
        self._number += 1
        if not line.strip():
            return None
        try:
            if self._draft is None:
                check_is_not_foreign(line)
            line.decode()
            if self._draft is None:
                self._draft = self._begun(line)
                return None
            if line.startswith(b'{"end"'):
                return self._ended(self._draft, msgspec.json.decode(line, type=EndLine))
            self._draft.add(msgspec.json.decode(line, type=RecordLine))
        except _WRONG as error:
            self._fail(_reason(error))
        return None

    def _begun(self, line: bytes) -> _Draft:
        value = msgspec.json.decode(line)
        if not is_export(value):
            self._fail("a session should begin here, and this does not look like one that was exported as jsonl")
        _check_version(value["statestore"])
        return _Draft(msgspec.json.decode(line, type=HeadLine).session)

    def _ended(self, draft: _Draft, end: EndLine) -> StoredSession:
        if (end.end, end.records) != (draft.head.id, len(draft.records)):
            told = f"session {end.end} with {end.records} records ends here"
            self._fail(f"{told}, and session {draft.head.id} with {len(draft.records)} was begun: lines are missing")
        self._draft = None
        return draft.finished()

    def finish(self) -> None:
        """There are no more lines."""
        if self._number == 0:
            self._number = 1
            self._fail("it is empty")
        if self._draft is not None:
            self._fail(f"session {self._draft.head.id} does not end: the file was cut off")

    def _fail(self, reason: str) -> NoReturn:
        raise NotAnExport(self._name, self._number, reason)


class _Draft:
    """A session that is being read; raises `InvalidName`, `InvalidValue` or a decoder's error for what is none."""

    def __init__(self, head: SessionHead) -> None:
        self.head = head
        self.records: list[StoredRecord] = []
        self._keys: set[str] = set()
        self._check_head()

    def _check_head(self) -> None:
        head = self.head
        check_session_id(head.id)
        for moment in (head.created_at, head.updated_at):
            nanoseconds(moment)
        for what, text in (("metadata", head.metadata), ("layout", head.layout)):
            if text is not UNSET and RESERVED_METADATA_KEY in _object(text, what) and what == "metadata":
                raise InvalidValue(f"the metadata key {RESERVED_METADATA_KEY!r} is reserved for the store's own notes")

    def add(self, line: RecordLine) -> None:
        """One more record; raises if it is none, or does not follow the others."""
        if self.records and line.seq <= self.records[-1].seq:
            raise InvalidValue(f"number {line.seq} does not rise: the record before it has {self.records[-1].seq}")
        body = compact(bytes(line.body))
        record = decode_body(line.kind, body)
        if line.kind not in (USER, AGENT):
            check_label(line.kind, "the kind", may_be_empty=False)
        if isinstance(record, Event) and record.kind != line.kind:
            raise InvalidValue(f"the kind is {line.kind!r} here, and {record.kind!r} in the body")
        if line.key is not None:
            check_label(line.key, "the key", may_be_empty=False)
            if line.key in self._keys:
                raise InvalidValue(f"the key {line.key!r} is there twice")
            self._keys.add(line.key)
        self.records.append(StoredRecord(line.seq, line.kind, body, line.key))

    def finished(self) -> StoredSession:
        """The session, now that all of it was read."""
        head = self.head
        if self.records and head.next_seq <= self.records[-1].seq:
            raise InvalidValue(
                f"the next number, {head.next_seq}, is taken: the last record has {self.records[-1].seq}"
            )
        return StoredSession(
            id=head.id,
            fields=SessionFields(
                head.user_id,
                head.created_at,
                head.updated_at,
                head.active_seed_id,
                head.active_persona_id,
                head.project_id,
                head.parent_session_id,
            ),
            records=Records.of(self.records),
            version=None,
            next_seq=head.next_seq,
            message_count=sum(record.kind == USER for record in self.records),
            metadata=b"{}" if head.metadata is UNSET else joined_members(members(compact(bytes(head.metadata)))),
            layout=None if head.layout is UNSET else compact(bytes(head.layout)),
        )


def _object(text: Raw, what: str) -> dict[str, bytes]:
    try:
        return members(bytes(text))
    except msgspec.ValidationError:
        raise InvalidValue(f"the {what} are no JSON object") from None


def _check_version(version: Any) -> None:
    if type(version) is int and version > VERSION:
        raise InvalidValue(f"it was exported by a newer release (form {version}): import it with that release")
    if version != VERSION:
        raise InvalidValue(
            f"it does not tell the form it was exported in (statestore is {str(version)[:20]!r}, not {VERSION})"
        )


def _reason(error: Exception, text: bytes = b"") -> str:
    """What is wrong, in a few words."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    if isinstance(error, msgspec.ValidationError):
        return f"it is no export of statestore: {error}" if text else str(error)
    if isinstance(error, msgspec.DecodeError):
        return f"it is not JSON, and only jsonl and json exports can be imported: {error}"
    return str(error)


def _byte_in(error: Exception, text: bytes) -> int:
    """The byte that an error means: the one it names, the last one of a text that was cut off, or the first one."""
    if isinstance(error, UnicodeDecodeError):
        return error.start
    if "truncated" in str(error):
        return len(text.rstrip())
    found = _BYTE.search(str(error))
    return int(found[1]) if found else 0


def _line_at(text: bytes, place: int) -> int:
    return text.count(b"\n", 0, place) + 1
