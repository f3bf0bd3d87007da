"""What a thread's session holds besides the conversation: checkpoints and pending writes, as events.

What a person may want to see is in the event's data; what the framework needs is beside it, in a field with the
framework's name. That field is read as a `CheckpointNote` or a `WritesNote`; where it is anything else, the record is a
message of the conversation, or somebody else's.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from statestore.adapters.langgraph.shortening import full
from statestore.engine import NewRecord
from statestore.errors import InvalidValue
from statestore.records import Event, body_of
from statestore.timestamps import datetime_of, nanoseconds, text_of

FRAMEWORK: Final = "langgraph"
CHECKPOINT: Final = "checkpoint"
WRITES: Final = "writes"


class CheckpointNote(Struct, omit_defaults=True):
    """One checkpoint. Each of its values lies here, or in the note of an earlier checkpoint.

    It is stored so, whole, or as a `LikeCheckpoint`.
    """

    v: int
    id: str
    ns: str = ""
    parent: str | None = None
    ts: str = ""
    """When it was made; left out where the record's own moment says it."""
    versions: dict[str, Any] = {}
    seen: dict[str, dict[str, Any]] = {}
    updated: list[str] | None = None
    more: dict[str, Any] = {}
    """Fields of a checkpoint that are not ours to know, encoded."""
    metadata: dict[str, Any] = {}
    """The checkpoint's metadata, encoded."""
    values: dict[str, Any] = {}
    """Values that came with this checkpoint, encoded: a `ListNote` where it has the key ``$list``."""
    at: dict[str, int] = {}
    """Where the other values are: the numbers of the records whose notes hold them."""
    since: int | None = None
    """The number of the first record of this checkpoint, if one was stored before: writes to it, or itself."""
    is_late: bool = field(default=False, name="late")
    """Whether a checkpoint with this id or a higher one was there already, in whatever namespace."""
    ids: dict[int, str] = {}
    """The ids (`short`) that messages were given after they had been stored without one, by their records' numbers."""


class LikeCheckpoint(Struct, omit_defaults=True):
    """A checkpoint as what it does not have in common with an earlier one, whose note is whole.

    Numbers of records are distances back from its own here, and whole numbers among versions, as well as the step, are
    distances from the highest version: what a graph does turn after turn then looks the same.
    """

    id: str
    """`short`."""
    like: int
    top: int | None = None
    """The highest version; left out where the step that the event shows tells it."""
    up: int | None = None
    """Its parent's record."""
    ns: str = ""
    ts: str = ""
    since: int | None = None
    is_late: bool = field(default=False, name="late")
    ids: dict[int, str] = {}
    v: int | UnsetType = UNSET
    updated: list[str] | UnsetType | None = UNSET
    versions: dict[str, Any] = {}
    seen: dict[str, Any] = {}
    more: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    values: dict[str, Any] = {}
    at: dict[str, Any] = {}


class WritesNote(Struct, omit_defaults=True):
    """What one task wrote, pending on a checkpoint. It is stored so, whole, or as `LikeWrites`."""

    task: str
    checkpoint: str
    ns: str = ""
    path: str = ""
    writes: list[tuple[int, str, Any]] = []
    """Position, channel, and the value encoded. A special write (an error, an interrupt) has a position below 0."""
    ids: dict[int, str] = {}
    """As in a `CheckpointNote`."""


class LikeWrites(Struct, omit_defaults=True):
    """Writes as what they do not have in common with earlier ones, whose note is whole. Numbers are distances back."""

    task: str
    """`short`."""
    like: int
    to: int | None = None
    """The checkpoint's record, if it was there already."""
    checkpoint: str = ""
    """Otherwise its id, `short`."""
    ns: str = ""
    ids: dict[int, str] = {}
    path: str | UnsetType = UNSET
    writes: list[tuple[int, str, Any]] | UnsetType = UNSET


class ListNote(Struct, omit_defaults=True):
    """A list as a change of an earlier version of it."""

    size: int = 0
    pieces: list[Any] = []
    """In order: ``[from, to]``, a slice of the base; ``{"at": […]}``, the numbers of records that are messages;
    ``{"items": […]}``, encoded items; ``{"dense": "…"}`` or ``{"packed": "…"}``, many numbers. A number below 0 stands
    for the message with the id that it was given later."""
    base: int | None = None
    """The number of the record that holds the earlier version."""
    more: list[int] = []
    """Instead of pieces: all of the base, and then these messages."""


class Line(Struct, gc=False):
    """What the saver reads of any record: a message's text, and what is beside it, undecoded."""

    mark: Raw | UnsetType = field(default=UNSET, name=FRAMEWORK)
    content: str | UnsetType = UNSET
    data: Raw | UnsetType = UNSET
    timestamp: str = ""

    def text(self) -> str:
        """The text that a message has in common with its record."""
        if self.content is not UNSET:
            return self.content
        return "" if self.data is UNSET else _decode_output(self.data).output


class _Shown(Struct):
    step: int | None = None


def step_shown_by(data: Raw | UnsetType) -> int | None:
    """The step that a checkpoint's event shows."""
    return None if data is UNSET else _decode_shown(data).step


class _Output(Struct):
    output: str = ""


_decode_shown: Final = msgspec.json.Decoder(_Shown).decode
_decode_output: Final = msgspec.json.Decoder(_Output).decode


class Head(Struct, gc=False):
    """What a note is about, without its values."""

    v: int | None = None
    id: str | None = None
    task: str | None = None
    ns: str = ""
    checkpoint: str = ""
    is_late: bool = field(default=False, name="late")
    like: int | None = None
    up: int | None = None
    to: int | None = None
    ids: dict[int, str] = {}
    type: str | None = None
    """Of a message."""

    @property
    def is_checkpoint(self) -> bool:
        """Whether this is the note of a checkpoint."""
        return self.id is not None and self.type is None and (self.v is not None or self.like is not None)

    @property
    def is_writes(self) -> bool:
        """Whether this is the note of some writes."""
        return self.task is not None and self.type is None


decode_checkpoint: Final = msgspec.json.Decoder(CheckpointNote).decode
decode_like_checkpoint: Final = msgspec.json.Decoder(LikeCheckpoint).decode
decode_writes: Final = msgspec.json.Decoder(WritesNote).decode
decode_like_writes: Final = msgspec.json.Decoder(LikeWrites).decode
_decode_head: Final = msgspec.json.Decoder(Head).decode
_encode: Final = msgspec.json.Encoder().encode


def head_of(mark: bytes) -> Head | None:
    """What the note beside a record is about; ``None`` if that is no note of ours."""
    try:
        head = _decode_head(mark)
    except msgspec.ValidationError:
        return None
    if head.like is not None:
        head.id, head.checkpoint = head.id and full(head.id), full(head.checkpoint)
    return head


def note_text(note: Any) -> bytes:
    """A note, or a part of one, as JSON; `InvalidValue` for what is not."""
    try:
        return _encode(note)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"a checkpoint, or what was written to one, cannot be stored: {error}") from error


def note_record(kind: str, data: Any, note: bytes, seq: int | None = None, moment: str | None = None) -> NewRecord:
    """An event with a note beside it, as an engine takes it."""
    event = Event(kind, data, None if moment is None else datetime_of(moment))
    body = body_of(event)[:-1] + b',"langgraph":' + note + b"}"
    return NewRecord(kind, body, nanoseconds(event.timestamp_text), None, seq)


def moment_said_by(ts: str) -> str | None:
    """The moment of a record that tells by itself when its checkpoint was made; ``None`` if none can."""
    try:
        moment = text_of(datetime.fromisoformat(ts))
    except (ValueError, InvalidValue):
        return None
    return moment if ts_told_by(moment) == ts else None


def ts_told_by(moment: str) -> str:
    """When a checkpoint was made, as its record's moment tells it."""
    return datetime_of(moment).isoformat()
