"""What engines hand up: sessions and documents as they are stored, before anybody works with them.

Bodies, metadata and unknown fields are JSON text, kept verbatim, so that a copy through any number of
engines ends in the same bytes.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeVar, overload

import msgspec
from msgspec import Struct

from statestore.errors import CorruptDocument, InvalidCursor, InvalidValue
from statestore.jsontext import joined_array
from statestore.records import (
    AGENT,
    USER,
    DecodedRecords,
    RecordArrays,
    RecordPieces,
    bodies_of,
    column_of,
    decode_arrays,
    decode_pieces,
)
from statestore.timestamps import datetime_of, nanoseconds

T = TypeVar("T")

Version = Hashable
"""Opaque: compared for equality only, never used twice. ``str(version)`` holds across processes."""

DocumentKind = Literal["json", "md", "bin"]
DOCUMENT_KINDS: Final[tuple[DocumentKind, ...]] = ("json", "md", "bin")


class StoredRecord(Struct, frozen=True):
    """One record of a session: its number, its kind, its JSON, and the idempotency key it came with."""

    seq: int
    kind: str
    body: bytes
    key: str | None = None


class Numbering(Struct, frozen=True):
    """Which sequence number each record has, array by array, and which ones carry a key."""

    users: Sequence[int] = ()
    agents: Sequence[int] = ()
    events: Sequence[int] = ()
    keys: dict[int, str] = {}

    @property
    def columns(self) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
        """The numbers of the three arrays."""
        return self.users, self.agents, self.events

    def in_order(self) -> list[int]:
        """All numbers, as the records follow each other."""
        return sorted((*self.users, *self.agents, *self.events))


class Records:
    """A run of one session's records, in bulk: decoded, numbered and split only when asked.

    An engine gives the three JSON arrays as they lie in its storage. Numbering may be a function of the decoded
    records, for engines that must work it out.
    """

    __slots__ = ("_arrays", "_decoded", "_numbering", "_pieces")

    def __init__(
        self,
        arrays: RecordArrays | None,
        numbering: Numbering | Callable[[DecodedRecords], Numbering],
        *,
        pieces: RecordPieces | None = None,
    ) -> None:
        self._arrays = arrays
        self._pieces = pieces
        self._numbering = numbering
        self._decoded: DecodedRecords | None = None

    @classmethod
    def of_pieces(cls, pieces: RecordPieces, numbering: Numbering) -> "Records":
        """The bulk form of records that an engine gives in pieces: what stays small is decoded faster."""
        return cls(None, numbering, pieces=pieces)

    @classmethod
    def of(cls, records: Iterable[StoredRecord]) -> "Records":
        """The bulk form of single records, which must come in the order of their numbers."""
        bodies: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
        seqs: tuple[list[int], list[int], list[int]] = ([], [], [])
        keys: dict[int, str] = {}
        for record in records:
            column = column_of(record.kind)
            bodies[column].append(record.body)
            seqs[column].append(record.seq)
            if record.key is not None:
                keys[record.seq] = record.key
        arrays = RecordArrays(*(memoryview(joined_array(column)) for column in bodies))
        return cls(arrays, Numbering(*seqs, keys))

    @property
    def arrays(self) -> RecordArrays:
        """The records as JSON: the user's, the agent's, the events."""
        if self._arrays is None:
            pieces = self._pieces or RecordPieces()
            self._arrays = RecordArrays(*(memoryview(joined_array(column)) for column in pieces))
        return self._arrays

    def as_they_lie(self) -> tuple[list[memoryview], list[memoryview], list[memoryview]]:
        """The records as JSON, the arrays of each kind in as many parts as the engine gave."""
        if self._pieces is None:
            users, agents, events = ([array] for array in self.arrays)
        else:
            users, agents, events = ([memoryview(b"[%b]" % piece) for piece in column] for column in self._pieces)
        return users, agents, events

    @property
    def numbering(self) -> Numbering:
        """The sequence numbers."""
        if not isinstance(self._numbering, Numbering):
            self._numbering = self._numbering(self.decoded())
        return self._numbering

    def numbers(self) -> Callable[[], Numbering]:
        """The sequence numbers, to be asked for later, without holding on to the arrays until then."""
        numbering, decoded = self._numbering, self.decoded()
        return lambda: numbering if isinstance(numbering, Numbering) else numbering(decoded)

    def decoded(self) -> DecodedRecords:
        """The records as objects; the lists are the same ones at every call."""
        if self._decoded is None:
            decoded = decode_arrays(self.arrays) if self._pieces is None else decode_pieces(self._pieces)
            self._check_counts(decoded)
            self._decoded = decoded
        return self._decoded

    def _check_counts(self, decoded: DecodedRecords) -> None:
        """Raise ``ValueError`` where there are other records than numbers: somebody damaged a row."""
        if isinstance(self._numbering, Numbering):
            counts = [len(column) for column in self._numbering.columns]
            found = [len(column) for column in decoded]
            if counts != found:
                raise ValueError(f"it has {found} messages, responses and events that can be read, of {counts}")

    def in_order(self) -> list[StoredRecord]:
        """The records one by one, as they follow each other in the session."""
        numbers = self.numbering
        records = [StoredRecord(seq, USER, body) for seq, body in _numbered(numbers.users, self.arrays.users)]
        records += [StoredRecord(seq, AGENT, body) for seq, body in _numbered(numbers.agents, self.arrays.agents)]
        kinds = [event.kind for event in self.decoded().events]
        events = _numbered(numbers.events, self.arrays.events)
        records += [StoredRecord(seq, kind, body) for kind, (seq, body) in zip(kinds, events, strict=True)]
        records.sort(key=lambda record: record.seq)
        if numbers.keys:
            records = [msgspec.structs.replace(record, key=numbers.keys.get(record.seq)) for record in records]
        return records


def _numbered(seqs: Sequence[int], array: memoryview) -> Iterable[tuple[int, bytes]]:
    return zip(seqs, bodies_of(array), strict=True)


class SessionSummary(Struct, frozen=True, gc=False):
    """What a listing tells of a session, without its messages."""

    id: str
    user_id: str
    message_count: int
    created_text: str = msgspec.field(name="created_at")
    updated_text: str = msgspec.field(name="updated_at")
    response_count: int = 0
    event_count: int = 0
    active_seed_id: str | None = None
    active_persona_id: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None
    title: str | None = None
    size: int = 0
    version: str = ""

    @property
    def created_at(self) -> datetime:
        """When the session began, in UTC."""
        return datetime_of(self.created_text)

    @property
    def updated_at(self) -> datetime:
        """When the session was last changed, in UTC."""
        return datetime_of(self.updated_text)

    @property
    def cursor(self) -> str:
        """Where a listing that ended with this session goes on: ``list_sessions(after=summary.cursor)``."""
        return Cursor(nanoseconds(self.updated_text), self.id).text


class Cursor(Struct, frozen=True, order=True):
    """A place in a listing: what comes after it is older, or as old with a higher id."""

    updated_ns: int
    id: str

    @property
    def text(self) -> str:
        """The form that is handed to users."""
        return f"{self.updated_ns}:{self.id}".encode().hex()

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """The cursor behind a text; `InvalidCursor` if there is none."""
        try:
            number, colon, session_id = bytes.fromhex(text).decode().partition(":")
            cursor = cls(int(number), session_id) if colon else None
        except (TypeError, ValueError):
            cursor = None
        if cursor is None or cursor.text != text:
            raise InvalidCursor(f"{str(text)[:60]!r} is not a cursor: pass the .cursor of a summary from list_sessions")
        return cursor


OPTIONAL_FIELDS: Final = ("active_seed_id", "active_persona_id", "project_id", "parent_session_id")
"""The fields of a session that may be unset."""


class SessionFields(Struct, frozen=True):
    """The fields of a session that are one short text each, and their text as it is stored."""

    user_id: str
    created: str
    updated: str
    active_seed_id: str | None = None
    active_persona_id: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None


class StoredSession(Struct, frozen=True):
    """A session as its engine keeps it, with all of its records or a part of them."""

    id: str
    fields: SessionFields
    records: Records
    version: Version
    next_seq: int
    """The number that the next record will get."""
    message_count: int
    """How many user messages the session has in all, in ``records`` or not."""
    metadata: bytes = b"{}"
    layout: bytes | None = None
    """Where the session's JSON is out of the ordinary: its top-level keys in order, unknown ones with their text."""


class Document(Struct, frozen=True):
    """A stored document: its bytes and its version."""

    category: str
    name: str
    kind: DocumentKind
    body: bytes
    version: str

    @property
    def text(self) -> str:
        """The document as text; `CorruptDocument` if it is none."""
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            raise CorruptDocument(f"{self._place} is not UTF-8: {error}; its bytes are in .body") from error

    @property
    def value(self) -> Any:
        """The document as what it holds: a decoded value (JSON), a text (markdown), or bytes."""
        if self.kind == "json":
            return self.decoded(Any)
        return self.text if self.kind == "md" else self.body

    @overload
    def decoded(self, type: type[T]) -> T: ...
    @overload
    def decoded(self, type: Any) -> Any: ...
    def decoded(self, type: Any) -> Any:
        """A JSON document as any type that ``msgspec`` can decode; `InvalidValue` if it is not that."""
        try:
            return msgspec.json.decode(self.body, type=type)
        except msgspec.ValidationError as error:
            if type is Any:
                raise CorruptDocument(f"{self._place} cannot be read: {error}") from error
            raise InvalidValue(f"{self._place} is not what was asked for: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CorruptDocument(f"{self._place} cannot be read: {error}") from error

    @property
    def _place(self) -> str:
        return f"{self.category}/{self.name}.{self.kind}"


class DocumentInfo(Struct, frozen=True):
    """What a listing tells of a document."""

    category: str
    name: str
    kind: DocumentKind
    size: int

    @property
    def cursor(self) -> str:
        """Where it is in the listing of its category, for ``after=``."""
        return f"{self.name}.{self.kind}"


class Problem(Struct, frozen=True):
    """Something that ``check()`` found: where, what is wrong, and what to do about it."""

    where: str
    what: str
    advice: str
    """What to do; if it is repaired, what was done."""
    is_repaired: bool = False


class SearchHit(Struct, frozen=True):
    """A place where a search found its words: a record of a session, or the session's title."""

    session_id: str
    seq: int | None
    """The record's number; ``None`` if the words are in the title."""
    kind: str
    """``user``, ``agent``, the event's own kind, or ``title``."""
    snippet: str
    """A piece of the text around the words."""
    marks: tuple[tuple[int, int], ...]
    """Where in the snippet the words are: pairs of start and end."""
    user_id: str
    title: str | None
    cursor: str
    """Where a search that ended with this hit goes on: ``search_sessions(…, after=hit.cursor)``."""


What = Literal["record", "session", "rewound", "deleted"]


class StoredNotice(Struct, frozen=True):
    """Something that happened to a session, as an engine tells it."""

    session_id: str
    what: What
    cursor: str
    seq: int | None = None
    """The number of the record that was added, or of the last one that was left by a rewind."""
    record: StoredRecord | None = None
