"""What a `Session` object knows of the store behind it: what is stored, what is new, and who is saving it.

Users see none of this; a save works with it.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import is_
from typing import Any, Generic, TypeVar

import msgspec

from statestore.errors import InvalidValue
from statestore.history import History, Keeper
from statestore.jsontext import check_label, json_text, members
from statestore.names import RESERVED_METADATA_KEY
from statestore.records import AgentResponse, Event, Record, UserMessage, column_of, kind_of
from statestore.stored import Numbering, SessionFields, Version
from statestore.timeline import Column, first_changed_seq
from statestore.timestamps import RisingClock, nanoseconds

T = TypeVar("T")


class Pending(msgspec.Struct, frozen=True):
    """A record that was appended and not saved yet, with its idempotency key."""

    record: Record
    key: str | None = None


class Origin:
    """What the store has of a session, as far as one `Session` object knows.

    A save makes a new one of it: so whoever is interrupted while noting a save can begin again.
    """

    __slots__ = (
        "_appended",
        "_appended_count",
        "_numbering",
        "fields",
        "holds_opening",
        "is_part",
        "is_stale",
        "last_seq",
        "layout",
        "metadata",
        "place",
        "version",
    )

    def __init__(
        self,
        version: Version,
        fields: SessionFields,
        metadata: bytes,
        layout: bytes | None,
        *,
        place: str,
        numbering: Callable[[], Numbering],
        last_seq: int,
        is_part: bool = False,
        holds_opening: bool = True,
    ) -> None:
        self.version = version
        self.fields = fields
        self.metadata = metadata
        self.layout = layout
        self.place = place
        """The URL of the store that has it."""
        self.last_seq = last_seq
        """The highest number that this object knows to be given out."""
        self.is_part = is_part
        """Whether only the newest records were loaded."""
        self.holds_opening = holds_opening
        """Whether the object has the first of the user's messages, or there is none."""
        self.is_stale = False
        """Somebody else's change was merged with ours, so the object does not hold all that is stored."""
        self._numbering = numbering
        self._appended: list[tuple[int, int, str | None]] = []
        self._appended_count = 0
        """How many of those are ours: later ones are of an origin that was made of this one, and has the same list."""

    def after(self, version: Version, fields: SessionFields, metadata: bytes, *, is_stale: bool) -> Origin:
        """What the store has once these fields and metadata are stored, with the same records."""
        later = Origin(
            version,
            fields,
            metadata,
            self.layout,
            place=self.place,
            numbering=self._numbering,
            last_seq=self.last_seq,
            is_part=self.is_part,
            holds_opening=self.holds_opening,
        )
        later.is_stale = is_stale
        later._appended, later._appended_count = self._appended, self._appended_count
        return later

    def seqs(self) -> tuple[list[int], list[int], list[int]]:
        """The numbers of the stored records, list by list."""
        numbering = self._numbering()
        columns = list(numbering.users), list(numbering.agents), list(numbering.events)
        for column, seq, _ in self._appended[: self._appended_count]:
            columns[column].append(seq)
        return columns

    def keys(self) -> dict[int, str]:
        """The idempotency keys of the stored records, by their numbers."""
        appended = self._appended[: self._appended_count]
        return self._numbering().keys | {seq: key for _, seq, key in appended if key is not None}

    def note_appended(self, records: Sequence[Record], keys: Sequence[str | None], seqs: Sequence[int]) -> None:
        """These records are stored now, under these numbers."""
        del self._appended[self._appended_count :]  # of whoever was interrupted here
        for record, key, seq in zip(records, keys, seqs, strict=True):
            self._appended.append((column_of(kind_of(record)), seq, key))
            if seq <= self.last_seq:  # its idempotency key was there before: the object holds one record too many
                self.is_stale = True
            self.last_seq = max(self.last_seq, seq)
        self._appended_count = len(self._appended)

    def note_truncated(self, first_gone: int) -> None:
        """The records from this number on are gone."""
        users, agents, events = (column[: bisect_left(column, first_gone)] for column in self.seqs())
        left = Numbering(users, agents, events, self.keys())
        self._numbering = lambda: left
        self._appended, self._appended_count = [], 0


class Shelf(Generic[T]):
    """One of a session's lists, and what the store has of it."""

    __slots__ = ("_stored", "_stored_count", "records")

    def __init__(self, records: Sequence[T], accepts: type[T], keeper: Keeper) -> None:
        self.records = History(records, accepts, keeper)
        self._stored_count = len(records)
        self._stored: list[T] | None = None
        """What the store has, once the list was edited; until then, that is simply its first records."""

    def before_edit(self) -> None:
        """Remember what the store has: the list is about to be changed otherwise than by an append."""
        if self._stored is None:
            self._stored = self.records[: self._stored_count]

    @property
    def is_edited(self) -> bool:
        """Whether anything but an append was done to the list."""
        return self._stored is not None

    @property
    def stored_count(self) -> int:
        """How many records the store has."""
        return self._stored_count

    def stored(self) -> list[T]:
        """The records that the store has, as they were when they were loaded or saved."""
        return self.records[: self._stored_count] if self._stored is None else self._stored

    def note_appended(self, count: int, records: list[T]) -> None:
        """The store has these too now, after so many that it had."""
        self._stored_count = count + len(records)
        if self._stored is not None:
            self._stored[count:] = records

    def note_stored(self, snapshot: list[T], waiting: list[T]) -> None:
        """The store has exactly this now, which is what the list was a moment ago; ``waiting`` was appended since."""
        self._stored_count = len(snapshot)
        expected = [*snapshot, *waiting]
        is_only_longer = len(self.records) == len(expected) and all(map(is_, self.records, expected))
        self._stored = None if is_only_longer else snapshot


class Ledger:
    """The books of one session object."""

    __slots__ = ("__weakref__", "changing", "clock", "metadata", "origin", "pending", "shelves", "turn", "unsure")

    def __init__(
        self,
        origin: Origin | None,
        records: tuple[Sequence[UserMessage], Sequence[AgentResponse], Sequence[Event]],
    ) -> None:
        self.origin = origin
        """What the store has; ``None`` while the session is new."""
        self.metadata: dict[str, Any] | None = {} if origin is None else None
        """The metadata, once somebody looked at them."""
        self.pending: list[Pending] = []
        """What was appended since, in order."""
        self.changing = threading.Lock()
        """Held for the instant in which a record is added, or a save looks at what there is."""
        self.turn: Any = None
        """The turn of whoever is saving the object; a host's."""
        self.unsure: Any = None
        """The draft of a save that is under way, or that ended without telling whether it happened."""

        self.clock: RisingClock | None = None
        """What stamps new records, once there are any."""
        users, agents, events = records
        self.shelves = Shelf(users, UserMessage, self), Shelf(agents, AgentResponse, self), Shelf(events, Event, self)

    def add(self, record: Record, key: str | None) -> None:
        """Append a record to its list, with its idempotency key."""
        self.append_to(self.shelves[column_of(kind_of(record))].records, record, key)

    def append_to(self, history: list[Any], record: Any, key: str | None = None) -> None:
        """Put a record at the end of a list, and take note of it."""
        with self.changing:
            list[Any].append(history, record)
            self.pending.append(Pending(record, key))
            if self.clock is not None:
                self.clock.see(nanoseconds(record.timestamp_text))

    def before_edit(self, history: list[Any]) -> None:
        """A list is about to be changed otherwise than by an append."""
        for shelf in self.shelves:
            if shelf.records is history:
                shelf.before_edit()

    def columns(self) -> tuple[Column, Column, Column]:
        """The three lists beside what the store has of them."""
        seqs: Sequence[Sequence[int]] = self.origin.seqs() if self.origin else ((), (), ())
        users, agents, events = (
            Column(shelf.records, shelf.stored(), numbers) for shelf, numbers in zip(self.shelves, seqs, strict=True)
        )
        return users, agents, events

    def is_edited(self) -> bool:
        """Whether history was touched in any other way than by appending, or an append was interrupted half-way."""
        added = sum(len(shelf.records) - shelf.stored_count for shelf in self.shelves)
        return added != len(self.pending) or any(shelf.is_edited for shelf in self.shelves)

    def rewritten_since(self) -> int | None:
        """The number of the first stored record that was removed, replaced or moved, if one was."""
        return first_changed_seq(self.columns()) if self.is_edited() else None

    def changed_metadata(self) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """The metadata keys to set, with their JSON, and those to unset."""
        if self.metadata is None:
            return {}, ()
        stored = members(self.origin.metadata) if self.origin else {}
        changed = {
            check_label(key, "a metadata key"): check_metadata(key, value)
            for key, value in self.metadata.items()
            if key not in stored or not _is_same(value, stored[key])
        }
        return changed, tuple(key for key in stored if key not in self.metadata)


def check_metadata(key: object, value: Any) -> bytes:
    """The JSON of a metadata value; `InvalidValue` if the key or the value cannot be kept."""
    label = check_label(key, "a metadata key")
    if label == RESERVED_METADATA_KEY:
        raise InvalidValue(f"the metadata key {label!r} is reserved for the store's own notes")
    return json_text(value, f"metadata[{label!r}]")


def _is_same(value: Any, stored: bytes) -> bool:
    """Whether a value is what this JSON stands for, types included (1 is neither True nor 1.0)."""
    original = msgspec.json.decode(stored)
    try:
        text = json_text(value, "")
    except InvalidValue:
        return value == original  # beyond our limits, which is no matter if it was read so
    return text in (stored, msgspec.json.encode(original))
