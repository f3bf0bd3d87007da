"""What a saver knows of a thread: a stretch of its log up to the newest record, and messages from anywhere in it.

A view is only ever a cache. `Thread` brings it up to date before it is asked, by reading what came after the last
record that it knows; if that record is not there any more, somebody rewrote the session, and the view begins anew.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage

from statestore.adapters.langgraph.lists import Element
from statestore.adapters.langgraph.messages import named, twin
from statestore.adapters.langgraph.noted import Key, Noted
from statestore.adapters.langgraph.rolls import Roll
from statestore.adapters.langgraph.sameness import are_equal
from statestore.errors import CorruptSession

_references: Final[Callable[[object], int]] = getattr(sys, "getrefcount", lambda _: sys.maxsize)
_OWN_REFERENCES: Final = max(map(_references, list({0: object()}.values()))) + 1
"""How many references a message has that lies in the view and in a list, and that nobody else holds."""

_LISTS: Final = 16
_NAMELESS: Final = 64


def _nothing(seq: int) -> BaseMessage:
    raise CorruptSession(f"the message in record {seq} was not read")


class Elements:
    """The elements of a list, and the messages among them if it holds nothing else.

    ``depth`` is the number of changes that it is told by.
    """

    __slots__ = ("all", "depth", "roll")

    def __init__(self, elements: Sequence[Element], roll: Roll | None = None, depth: int = 0) -> None:
        self.all = elements
        self.roll = roll
        self.depth = depth

    def numbers(self) -> Sequence[int]:
        """The messages among the elements."""
        if self.roll is not None:
            return cast("Sequence[int]", self.all)
        return [element for element in self.all if isinstance(element, int)]


class View(Noted):
    """The cache for one thread."""

    def __init__(self) -> None:
        self.opened: Callable[[int], BaseMessage] = _nothing
        """Makes the message that was read in a record."""
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        super().forget()
        self.created: str | None = None
        self.version: Any = None
        self.next_seq = 1
        self.last_seq = 0
        self.floor = 1
        """Everything from this number on is known."""
        self.nameless: OrderedDict[int, tuple[Key, BaseMessage]] = OrderedDict()
        """Messages that were written to a checkpoint without an id, and are not part of a list yet."""
        self.listed: OrderedDict[int, tuple[Key, BaseMessage]] = OrderedDict()
        """Messages without an id that are part of a list, by the checkpoint which that list's follows: the framework
        writes in many threads, so that they may be written to it only now.
        """
        self._messages: dict[int, BaseMessage] = {}
        self.number_of: dict[str, int] = {}
        """Which record holds the message with an id; below 0 if it was given the id later."""
        self.lists: OrderedDict[tuple[int, str], Elements] = OrderedDict()
        self._lent: dict[int, BaseMessage] = {}

    def may_lie_deeper(self, checkpoint_id: str) -> bool:
        """Whether a checkpoint with this id, or a higher one, may lie before everything that is known."""
        return self.floor > 1 and (self.ceiling is None or checkpoint_id < self.ceiling)

    def remember_list(self, seq: int, channel: str, elements: Elements) -> None:
        """Keep the elements of a list for the next version of it."""
        self.lists[seq, channel] = elements
        self.lists.move_to_end((seq, channel))
        if len(self.lists) > _LISTS:
            self.lists.popitem(last=False)

    def hold(self, seq: int, message: BaseMessage) -> None:
        """Keep a message that nobody else has."""
        self._messages[seq] = message
        self.lines.pop(abs(seq), None)
        if message.id:
            self.number_of[message.id] = seq

    def drop(self, seq: int) -> None:
        """Forget a message."""
        self._messages.pop(seq, None)
        self._lent.pop(seq, None)

    def has_message(self, seq: int) -> bool:
        """Whether the message in a record is in the view, and the id that it was given if it is asked for with that."""
        is_there = abs(seq) in self.lines or -seq in self._messages
        return seq in self._messages or (is_there and (seq > 0 or -seq in self.names))

    def expect(self, seq: int, key: Key, message: BaseMessage) -> None:
        """A message was written to a checkpoint without an id: the next one will hold it, perhaps with an id."""
        _keep_in(self.nameless, seq, (key, message))

    def note_listed(self, seq: int, key: Key, message: BaseMessage) -> None:
        """A message without an id is part of a list, in a checkpoint that follows this one."""
        _keep_in(self.listed, seq, (key, message))

    def held(self, seq: int) -> BaseMessage:
        """The message in a record, for comparing. It is never handed out; made from what was read when it is needed."""
        if seq not in self._messages:
            same = self._messages.get(-seq) if self.has_message(seq) else None  # but for the id that it was given
            self.hold(seq, self.opened(seq) if same is None else named(same, self.names.get(-seq)))
        return self._messages[seq]

    def roll_of(self, elements: Elements) -> Roll | None:
        """The messages of a list, which must be in the view; ``None`` if it holds anything else."""
        if elements.roll is None and len(numbers := elements.numbers()) == len(elements.all):
            elements.roll = Roll([self.held(seq) for seq in numbers])
        return elements.roll

    def lend(self, elements: Elements) -> list[BaseMessage]:
        """Copies of the messages of a list, for a caller to do with as it likes.

        A copy is handed out again if nobody holds it any more and it is what it was: that saves making thousands of
        them for every turn of a long conversation.
        """
        lent = self._lent
        numbers = elements.numbers()
        try:
            given = list(map(lent.__getitem__, numbers))
        except KeyError:
            new = [seq for seq in dict.fromkeys(numbers) if seq not in lent]
            for seq in new:
                lent[seq] = self._copy_of(seq)
            given = list(map(lent.__getitem__, numbers))
            if len(new) == len(numbers):
                return given
        roll = self.roll_of(elements) or Roll([self.held(seq) for seq in numbers])
        if max(map(_references, given), default=0) <= _OWN_REFERENCES and roll.is_as(given):
            return given
        for index, message in enumerate(given):
            held = roll.message(index)
            if _references(message) > _OWN_REFERENCES + 1 or not are_equal(message, held):
                given[index] = lent[numbers[index]] = twin(held)
        return given

    def _copy_of(self, seq: int) -> BaseMessage:
        if seq in self._messages or -seq in self._messages:
            return twin(self.held(seq))
        message = self.opened(seq)
        if message.id:
            self.number_of[message.id] = seq
        return message


def _keep_in(pool: OrderedDict[int, tuple[Key, BaseMessage]], seq: int, item: tuple[Key, BaseMessage]) -> None:
    """Keep a message until there are many of later checkpoints: one step may bring any number of them."""
    pool[seq] = item
    while len(pool) > _NAMELESS and next(iter(pool.values()))[0] != item[0]:
        pool.popitem(last=False)
