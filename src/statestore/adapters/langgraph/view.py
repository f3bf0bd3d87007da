"""What a saver knows of a thread: a stretch of its log up to the newest record, and messages from anywhere in it.

A view is only ever a cache. `Thread` brings it up to date before it is asked, by reading what came after the last
record that it knows; if that record is not there any more, somebody rewrote the session, and the view begins anew.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage
from msgspec import UNSET, Struct

from statestore.adapters.langgraph.lists import Element
from statestore.adapters.langgraph.messages import twin
from statestore.adapters.langgraph.notes import (
    CheckpointNote,
    Head,
    Line,
    WritesNote,
    decode_checkpoint,
    decode_head,
    decode_writes,
    ts_told_by,
)
from statestore.adapters.langgraph.rolls import Roll, are_same
from statestore.errors import CorruptSession

_references: Final[Callable[[object], int]] = getattr(sys, "getrefcount", lambda _: sys.maxsize)
_OWN_REFERENCES: Final = max(map(_references, list({0: object()}.values()))) + 1
"""How many references a message has that lies in the view and in a list, and that nobody else holds."""

Key = tuple[str, str]
"""A checkpoint: its namespace and its id."""

_LISTS: Final = 16


class Kept(Struct, gc=False):
    """A checkpoint in the view."""

    seq: int
    raw: bytes
    head: Head
    moment: str
    note: CheckpointNote | None = None

    @property
    def key(self) -> Key:
        """Its namespace and its id."""
        return self.head.ns, self.id

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return self.head.id or ""

    def opened(self) -> CheckpointNote:
        """The whole note."""
        if self.note is None:
            self.note = decode_checkpoint(self.raw)
            self.note.ts = self.note.ts or ts_told_by(self.moment)
        return self.note


def _nothing(seq: int) -> BaseMessage:
    raise CorruptSession(f"the message in record {seq} was not read")


class Elements:
    """The elements of a list, and the messages among them if it holds nothing else."""

    __slots__ = ("all", "roll")

    def __init__(self, elements: Sequence[Element], roll: Roll | None = None) -> None:
        self.all = elements
        self.roll = roll


class View:
    """The cache for one thread."""

    def __init__(self) -> None:
        self.opened: Callable[[int], BaseMessage] = _nothing
        """Makes the message that was read in a record."""
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        self.created: str | None = None
        self.version: Any = None
        self.next_seq = 1
        self.last_seq = 0
        self.floor = 1
        """Everything from this number on is known."""
        self.checkpoints: dict[Key, Kept] = {}
        self.by_seq: dict[int, Kept] = {}
        self.newest: dict[str, Kept] = {}
        """The checkpoint with the highest id, by namespace, as far as the view reaches."""
        self.disordered: set[str] = set()
        """The namespaces whose checkpoints came in another order than that of their ids."""
        self.writes: dict[Key, list[tuple[int, bytes]]] = {}
        self.lines: dict[int, Line] = {}
        """Records that are messages, as they were read."""
        self._messages: dict[int, BaseMessage] = {}
        self.number_of: dict[str, int] = {}
        """Which record holds the message with an id."""
        self.lists: OrderedDict[tuple[int, str], Elements] = OrderedDict()
        self._lent: dict[int, BaseMessage] = {}

    def absorb(self, found: Iterable[tuple[int, Line]]) -> None:
        """Take note of records."""
        for seq, line in found:
            if line.mark is UNSET:
                continue
            raw = bytes(line.mark)
            head = decode_head(raw) if line.content is UNSET and raw.startswith(b"{") else None
            if head is not None and head.is_checkpoint:
                self.keep(Kept(seq, raw, head, line.timestamp))
            elif head is not None and head.is_writes:
                self.add_writes((head.ns, head.checkpoint), seq, raw)
            elif raw.startswith(b"{"):
                self.lines[seq] = line

    def keep(self, kept: Kept) -> None:
        """Take note of a checkpoint; of two with one id, the later one holds."""
        key = kept.key
        known, newest = self.checkpoints.get(key), self.newest.get(kept.head.ns)
        self.by_seq[kept.seq] = kept
        if known is None or known.seq < kept.seq:
            self.checkpoints[key] = kept
        if newest is None or newest.id < kept.id or (newest.id == kept.id and newest.seq < kept.seq):
            self.newest[kept.head.ns] = kept
        if kept.head.is_late:
            self.disordered.add(kept.head.ns)

    def add_writes(self, key: Key, seq: int, raw: bytes) -> None:
        """Take note of writes."""
        self.writes.setdefault(key, []).append((seq, raw))

    def writes_of(self, key: Key) -> list[WritesNote]:
        """The notes of a checkpoint's writes, as they came."""
        return [decode_writes(raw) for _, raw in sorted(self.writes.get(key, ()))]

    def remember_list(self, seq: int, channel: str, elements: Elements) -> None:
        """Keep the elements of a list for the next version of it."""
        self.lists[seq, channel] = elements
        self.lists.move_to_end((seq, channel))
        if len(self.lists) > _LISTS:
            self.lists.popitem(last=False)

    def hold(self, seq: int, message: BaseMessage) -> None:
        """Keep a message that nobody else has."""
        self._messages[seq] = message
        self.lines.pop(seq, None)
        if message.id:
            self.number_of[message.id] = seq

    def drop(self, seq: int) -> None:
        """Forget a message."""
        self._messages.pop(seq, None)
        self._lent.pop(seq, None)

    def has_message(self, seq: int) -> bool:
        """Whether the message in a record is in the view."""
        return seq in self._messages or seq in self.lines

    def held(self, seq: int) -> BaseMessage:
        """The message in a record, for comparing. It is never handed out; made from what was read when it is needed."""
        if seq not in self._messages:
            self.hold(seq, self.opened(seq))
        return self._messages[seq]

    def roll_of(self, elements: Elements) -> Roll | None:
        """The messages of a list, which must be in the view; ``None`` if it holds anything else."""
        if elements.roll is None and all(isinstance(element, int) for element in elements.all):
            elements.roll = Roll([self.held(seq) for seq in elements.all if isinstance(seq, int)])
        return elements.roll

    def lend(self, elements: Elements) -> list[BaseMessage]:
        """Copies of the messages of a list, for a caller to do with as it likes.

        A copy is handed out again if nobody holds it any more and it is what it was: that saves making thousands of
        them for every turn of a long conversation.
        """
        lent = self._lent
        numbers = [seq for seq in elements.all if isinstance(seq, int)]
        new = [seq for seq in numbers if seq not in lent]
        for seq in new:
            lent[seq] = self._copy_of(seq)
        given = list(map(lent.__getitem__, numbers))
        if len(new) == len(numbers) and len(set(new)) == len(new):
            return given
        roll = self.roll_of(elements) or Roll([self.held(seq) for seq in numbers])
        if max(map(_references, given), default=0) <= _OWN_REFERENCES and roll.is_as(given):
            return given
        for index, message in enumerate(given):
            held = roll.messages[index]
            if _references(message) > _OWN_REFERENCES + 1 or not are_same(message, held):
                given[index] = lent[numbers[index]] = twin(held)
        return given

    def _copy_of(self, seq: int) -> BaseMessage:
        if seq in self._messages:
            return twin(self._messages[seq])
        message = self.opened(seq)
        if message.id:
            self.number_of[message.id] = seq
        return message
