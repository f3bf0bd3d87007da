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

from statestore.engine import NewRecord
from statestore.errors import InvalidValue
from statestore.records import Event, body_of
from statestore.timestamps import datetime_of, nanoseconds, text_of

FRAMEWORK: Final = "langgraph"
CHECKPOINT: Final = "checkpoint"
WRITES: Final = "writes"


class CheckpointNote(Struct, omit_defaults=True):
    """One checkpoint. Each of its values lies here, or in the note of an earlier checkpoint."""

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
    """The number of the first record with writes of this checkpoint, if one was stored before the checkpoint was."""
    is_late: bool = field(default=False, name="late")
    """Whether a checkpoint with a higher id was there already."""


class WritesNote(Struct, omit_defaults=True):
    """What one task wrote, pending on a checkpoint."""

    task: str
    checkpoint: str
    ns: str = ""
    path: str = ""
    writes: list[tuple[int, str, Any]] = []
    """Position, channel, and the value encoded. A special write (an error, an interrupt) has a position below 0."""


class ListNote(Struct, omit_defaults=True):
    """A list as a change of an earlier version of it."""

    size: int
    pieces: list[Any] = []
    """In order: ``[from, to]``, a slice of the base; ``{"at": […]}``, the numbers of records that are messages;
    ``{"items": […]}``, encoded items; ``{"packed": "…"}``, many numbers."""
    base: int | None = None
    """The number of the record that holds the earlier version."""
    depth: int = 0
    """How many versions there are below this one, down to one that needs no base."""
    root: int | None = None
    """The number of the record that holds that one."""


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


class _Output(Struct):
    output: str = ""


_decode_output: Final = msgspec.json.Decoder(_Output).decode


class Head(Struct, gc=False):
    """What a note is about, without its values."""

    v: int | None = None
    id: str | None = None
    task: str | None = None
    ns: str = ""
    checkpoint: str = ""
    is_late: bool = field(default=False, name="late")
    since: int | None = None

    @property
    def is_checkpoint(self) -> bool:
        """Whether this is the note of a checkpoint."""
        return self.v is not None

    @property
    def is_writes(self) -> bool:
        """Whether this is the note of some writes."""
        return self.task is not None


decode_checkpoint: Final = msgspec.json.Decoder(CheckpointNote).decode
decode_writes: Final = msgspec.json.Decoder(WritesNote).decode
decode_head: Final = msgspec.json.Decoder(Head).decode
_encode: Final = msgspec.json.Encoder().encode


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
