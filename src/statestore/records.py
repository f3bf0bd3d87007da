"""What a session is made of: user messages, agent responses, and events. All are frozen.

A record keeps its timestamp as text, so that no digit is lost, and its own JSON where that holds
more than we know (a newer program's fields) or less (an optional field left out).
"""

import operator
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import force_setattr

from statestore.errors import CorruptData, InvalidValue
from statestore.jsontext import check_label, check_text, compact, joined_members, json_text, members
from statestore.timestamps import datetime_of, latest_of, nanoseconds, now_text, text_of

USER: Final = "user"
AGENT: Final = "agent"

_encode = msgspec.json.Encoder().encode


class _Checked(type(Struct)):
    """Lets a record class check and convert what it is called with, while decoding stays in C."""

    if not TYPE_CHECKING:  # checkers read the __init__ of each class

        def __call__(cls, *args: Any, extra: Mapping[str, Any] | None = None, **kwargs: Any) -> Any:
            record = super().__call__(*cls._fields_of(*args, **kwargs))
            return _with_extra(record, extra) if extra else record

        @property
        def __signature__(cls) -> Any:
            """What it is called with, for `help`."""
            from inspect import Parameter, signature  # noqa: PLC0415 - costs 10 ms, and few ask

            called = signature(cls._fields_of)
            extra = Parameter("extra", Parameter.KEYWORD_ONLY, default=None)
            return called.replace(parameters=[*called.parameters.values(), extra], return_annotation=called.empty)


def decoded_value(text: bytes | Raw) -> Any:
    """A value from JSON that was stored; `CorruptData` where another program wrote what Python cannot hold."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptData(f"a value cannot be decoded: {error}") from error


class _Record(Struct, frozen=True, metaclass=_Checked):
    """What all records share."""

    if TYPE_CHECKING:
        timestamp_text: str

    @property
    def timestamp(self) -> datetime:
        """When it was said, in UTC, cut to microseconds; ``timestamp_text`` has all digits."""
        return datetime_of(self.timestamp_text)

    @property
    def extra(self) -> dict[str, Any]:
        """Fields beyond our own, decoded: what ``extra=`` brought, or a newer program wrote."""
        body = getattr(self, "body", None)
        if body is None:
            return {}
        known = _known_fields(type(self))
        return {key: decoded_value(raw) for key, raw in members(bytes(body)).items() if key not in known}

    @property
    def json(self) -> bytes:
        """The record as it is stored, fields beyond our own included: an answer to a request can be made of it."""
        return body_of(cast("Record", self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Record):
            return NotImplemented
        return _identity(self) == _identity(other)

    def __hash__(self) -> int:
        return hash(_identity(self))

    def __repr__(self) -> str:
        kind, body = _identity(self)
        try:
            fields = decoded_value(body)
        except CorruptData:
            return f"{type(self).__name__.removeprefix('_Verbatim')}({kind!r}, {body.decode()[:200]})"
        shown = ", ".join(f"{name}={value!r}" for name, value in fields.items() if value is not None)
        return f"{type(self).__name__.removeprefix('_Verbatim')}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return decode_body, _identity(self)


def _identity(record: _Record) -> tuple[str, bytes]:
    """What makes two records equal: their kind and their JSON, unknown fields included."""
    known = cast("Record", record)
    return kind_of(known), body_of(known)


@lru_cache
def _known_fields(of: type[_Record]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(of)) - {"body"}  # which holds all of them


def _with_extra(record: _Record, extra: Mapping[str, Any]) -> Any:
    """The record with more fields than its own, which are kept beside them as they are."""
    if not isinstance(extra, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"extra: fields by name, as a dict, not {type(extra).__name__}")
    taken = _known_fields(type(record)).intersection(extra)
    if taken:
        raise InvalidValue(f"extra: a record has a field {min(taken)!r} of its own")
    return with_fields(cast("Record", record), json_text(dict(extra), "extra"))


def _stamp(timestamp: datetime | None) -> str:
    return now_text() if timestamp is None else text_of(timestamp)


class UserMessage(_Record, frozen=True, gc=False, forbid_unknown_fields=True):
    """What the user said. ``extra`` keeps fields of a program's own beside it: ``extra={"attachments": […]}``."""

    content: str
    timestamp_text: str = msgspec.field(name="timestamp")

    if TYPE_CHECKING:

        def __init__(
            self, content: str, timestamp: datetime | None = None, *, extra: Mapping[str, Any] | None = None
        ) -> None: ...

    @staticmethod
    def _fields_of(content: str, timestamp: datetime | None = None) -> tuple[object, ...]:
        return check_text(content, "a message's content"), _stamp(timestamp)


class AgentResponse(_Record, frozen=True, gc=False, forbid_unknown_fields=True):
    """What the agent answered, and how it got there."""

    content: str
    session_id: str | None
    seed_id: str | None
    phase_reached: str | None
    evaluation_passed: bool | None
    timestamp_text: str = msgspec.field(name="timestamp")

    if TYPE_CHECKING:

        def __init__(
            self,
            content: str,
            session_id: str | None = None,
            seed_id: str | None = None,
            phase_reached: str | None = None,
            evaluation_passed: bool | None = None,
            timestamp: datetime | None = None,
            *,
            extra: Mapping[str, Any] | None = None,
        ) -> None: ...

    @staticmethod
    def _fields_of(
        content: str,
        session_id: str | None = None,
        seed_id: str | None = None,
        phase_reached: str | None = None,
        evaluation_passed: bool | None = None,
        timestamp: datetime | None = None,
    ) -> tuple[object, ...]:
        if evaluation_passed is not None and type(evaluation_passed) is not bool:
            raise InvalidValue("a response's evaluation_passed is True, False or None")
        return (
            check_text(content, "a response's content"),
            None if session_id is None else check_text(session_id, "a response's session_id"),
            None if seed_id is None else check_text(seed_id, "a response's seed_id"),
            None if phase_reached is None else check_text(phase_reached, "a response's phase_reached"),
            evaluation_passed,
            _stamp(timestamp),
        )


class Event(_Record, frozen=True, gc=False, forbid_unknown_fields=True):
    """Anything else that belongs to the conversation: a tool call, a thought, a framework's own item."""

    kind: str
    data_json: Raw = msgspec.field(name="data")
    timestamp_text: str = msgspec.field(name="timestamp")

    if TYPE_CHECKING:

        def __init__(
            self,
            kind: str,
            data: Any = None,
            timestamp: datetime | None = None,
            *,
            extra: Mapping[str, Any] | None = None,
        ) -> None: ...

    @staticmethod
    def _fields_of(kind: str, data: Any = None, timestamp: datetime | None = None) -> tuple[object, ...]:
        kind = check_label(kind, "an event's kind", may_be_empty=False)
        if kind in (USER, AGENT):
            raise InvalidValue(f"an event's kind cannot be {kind!r}: that is what the two message lists hold")
        return kind, Raw(json_text(data, "an event's data")), _stamp(timestamp)

    @property
    def data(self) -> Any:
        """The event's value, decoded anew at each access, so that nobody can change it in place."""
        return decoded_value(self.data_json)


for _type in (UserMessage, AgentResponse, Event):
    _type._fields_of.__qualname__ = _type.__name__  # pyright: ignore[reportPrivateUsage] - what a TypeError names

Record = UserMessage | AgentResponse | Event
_NO_BODY: Final = Raw(b"")
R = TypeVar("R", UserMessage, AgentResponse, Event)


class _VerbatimUserMessage(UserMessage, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=False):
    """A message with fields that we do not know."""

    body: Raw = _NO_BODY


class _VerbatimAgentResponse(AgentResponse, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=False):
    """A response with fields that we do not know, or without some that we do."""

    session_id: str | None = None
    seed_id: str | None = None
    phase_reached: str | None = None
    evaluation_passed: bool | None = None
    body: Raw = _NO_BODY


class _VerbatimEvent(Event, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=False):
    """An event with fields that we do not know."""

    data_json: Raw = msgspec.field(default=Raw(b"null"), name="data")
    body: Raw = _NO_BODY


def kind_of(record: Record) -> str:
    """``user``, ``agent``, or the event's own kind."""
    if isinstance(record, UserMessage):
        return USER
    return AGENT if isinstance(record, AgentResponse) else record.kind


def column_of(kind: str) -> int:
    """Which of a session's three lists a record of this kind belongs to."""
    return 0 if kind == USER else 1 if kind == AGENT else 2


def body_of(record: Record) -> bytes:
    """The record as compact JSON: the very text it was read from where that was out of the ordinary."""
    body: Raw | None = getattr(record, "body", None)
    if body is None:
        return _encode(record)
    text = compact(bytes(body))
    told = _codec_of(kind_of(record)).verbatim(bytes(body))
    own = [name for name in record.__struct_fields__ if name != "body"]
    if all(getattr(told, name) == getattr(record, name) for name in own):
        return text
    changed = members(_encode(record))  # somebody made it of another by `structs.replace`
    return joined_members(members(text) | {name: changed[name] for name in _known_fields(type(record))})


class RecordArrays(NamedTuple):
    """A run of records in bulk: one JSON array each for the user's, the agent's and the events."""

    users: memoryview = memoryview(b"[]")
    agents: memoryview = memoryview(b"[]")
    events: memoryview = memoryview(b"[]")


class RecordPieces(NamedTuple):
    """The same in pieces: each is some records' JSON, joined by commas."""

    users: Sequence[bytes] = ()
    agents: Sequence[bytes] = ()
    events: Sequence[bytes] = ()


class _ArrayCodec(Generic[R]):
    """Decodes an array of one kind of record."""

    def __init__(self, ordinary: type[R], verbatim: type[R]) -> None:
        self._ordinary = msgspec.json.Decoder(list[ordinary])
        self._verbatim = msgspec.json.Decoder(list[verbatim])

    def decode(self, array: memoryview) -> list[R]:
        """The records; their timestamps are texts, which `latest_moment` looks at."""
        try:
            return self._ordinary.decode(array)
        except msgspec.ValidationError:
            return self._with_bodies(array)  # an unknown field, a missing one, or no record at all

    def decode_pieces(self, pieces: Sequence[bytes]) -> list[R]:
        """The records of several pieces."""
        records: list[R] = []
        for piece in pieces:
            records += self.decode(memoryview(b"[%b]" % piece))
        return records

    def verbatim(self, body: bytes) -> R:
        """The record that a text of ours tells, with more fields than its own."""
        (record,) = self._verbatim.decode(b"[%b]" % body)
        force_setattr(record, "body", Raw(body))
        return record

    def _with_bodies(self, array: memoryview) -> list[R]:
        bytes(array).decode()  # what is kept as text must be text
        records = self._verbatim.decode(array)
        for record, body in zip(records, raw_items(array), strict=True):
            force_setattr(record, "body", body)
        return records


_TIMESTAMP: Final = operator.attrgetter("timestamp_text")
raw_items = msgspec.json.Decoder(list[Raw]).decode
"""The elements of a JSON array, each as it stands there."""
_USERS = _ArrayCodec(UserMessage, _VerbatimUserMessage)
_AGENTS = _ArrayCodec(AgentResponse, _VerbatimAgentResponse)
_EVENTS = _ArrayCodec(Event, _VerbatimEvent)


def _codec_of(kind: str) -> _ArrayCodec[Any]:
    return _USERS if kind == USER else _AGENTS if kind == AGENT else _EVENTS


class DecodedRecords(NamedTuple):
    """The records of three arrays."""

    users: list[UserMessage]
    agents: list[AgentResponse]
    events: list[Event]


def decode_arrays(arrays: RecordArrays) -> DecodedRecords:
    """The records of three arrays; raises ``msgspec.DecodeError`` where one is not a record."""
    return DecodedRecords(_USERS.decode(arrays.users), _AGENTS.decode(arrays.agents), _EVENTS.decode(arrays.events))


def decode_pieces(pieces: RecordPieces) -> DecodedRecords:
    """The records of three lists of pieces; raises ``msgspec.DecodeError`` where one is not a record."""
    return DecodedRecords(
        _USERS.decode_pieces(pieces.users), _AGENTS.decode_pieces(pieces.agents), _EVENTS.decode_pieces(pieces.events)
    )


def with_fields(record: Record, fields: bytes) -> Record:
    """A record of our own with more fields than its own: a JSON object that is known to be one, and not empty."""
    return _codec_of(kind_of(record)).verbatim(_encode(record)[:-1] + b"," + fields[1:])


def decode_body(kind: str, body: bytes) -> Record:
    """One record from its JSON; raises ``msgspec.DecodeError`` or `InvalidValue` if it is none."""
    records = _codec_of(kind).decode(memoryview(b"[" + body + b"]"))
    if len(records) != 1:
        raise InvalidValue(f"one record is expected here, and there are {len(records)}")
    nanoseconds(records[0].timestamp_text)
    return records[0]


def said_in(kind: str, body: bytes) -> tuple[str, str, str | bytes]:
    """What a record is known by, however another program spelt it: its kind, its moment, and its text or its data."""
    record = decode_body(kind, body)
    said = msgspec.json.encode(record.data, order="sorted") if isinstance(record, Event) else record.content
    return kind, record.timestamp_text, said


def is_found_by_number(record: Record) -> bool:
    """Whether others name this record by its number, or it names others so: a LangGraph thread's carry this mark."""
    return "langgraph" in record.extra


def bodies_of(array: bytes | memoryview) -> list[bytes]:
    """The elements of a JSON array, each as compact text."""
    return [compact(bytes(raw)) for raw in raw_items(array)]


def latest_moment(*columns: Sequence[Record]) -> datetime:
    """The latest timestamp of these records or a microsecond more; `InvalidValue` if one is no timestamp."""
    return latest_of([text for column in columns for text in map(_TIMESTAMP, column)])
