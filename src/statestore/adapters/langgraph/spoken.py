"""Messages on their way into a thread's conversation: which are there already, and the numbers of new ones.

Many a message has no id when it is written, and is given one when it becomes part of the conversation. It is stored
when it is written; the id is noted later, and the message with that id has the same number, below 0.
"""

from __future__ import annotations

from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from statestore.adapters.langgraph.ahead import Ahead
from statestore.adapters.langgraph.conversation import read_back, records_of
from statestore.adapters.langgraph.messages import named, twin
from statestore.adapters.langgraph.noted import Key
from statestore.adapters.langgraph.sameness import are_same
from statestore.adapters.langgraph.sessions import numbered
from statestore.adapters.langgraph.shortening import short
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import View
from statestore.engine import NewRecord
from statestore.records import Record

_KEPT_AS_THEY_ARE: Final = frozenset((HumanMessage, AIMessage, SystemMessage, ToolMessage))
"""A chunk of a message becomes a message when it is added to others."""


class Spoken:
    """The messages that one commit adds to what a view knows. The commit must be made at the view's version.

    ``written_to`` is the checkpoint that they are written to, or that the new one follows.
    """

    def __init__(self, view: View, codec: ValueCodec, written_to: Key) -> None:
        self._view = view
        self._codec = codec
        self._written_to = written_to
        self._first = view.next_seq
        self._records: list[Record] = []
        self._messages: dict[int, BaseMessage] = {}
        self._by_id: dict[str, int] = {}
        self._nameless: dict[int, Key] = {}
        self._listed: set[int] = set()
        self._used: set[int] = set()
        self.ids: dict[int, str] = {}
        """The ids that messages are given now, `short`, by the numbers of their records."""

    @property
    def next_seq(self) -> int:
        """The number of the record that comes after them."""
        return self._first + len(self._records)

    def number_of(self, message: BaseMessage) -> int | None:
        """The number of the record that holds this very message, if one does."""
        if not message.id:
            return None
        seq = self._by_id.get(message.id) or self._view.number_of.get(message.id)
        return seq if seq is not None and are_same(message, self.held(seq)) else None

    def listed(self, message: BaseMessage) -> int:
        """The number of a message that is part of the conversation now."""
        message = twin(message)
        seq = self.number_of(message) or self._expected(message, self._written_to)
        if seq is None:
            seq = self._added(message)
        elif not message.id:
            self._used.add(seq)
        if not message.id:
            self._listed.add(seq)
        return seq

    def written(self, message: BaseMessage, to: Key) -> int:
        """The number of a message that is written to a checkpoint, or is its input."""
        message = twin(message)  # the framework gives it an id meanwhile, in another thread
        seq = self.number_of(message) or self._expected(message, to) or self._listed_already(message, to)
        if seq is None:
            seq = self._added(message)
            if not message.id:
                self._nameless[seq] = to
        return seq

    def _expected(self, message: BaseMessage, to: Key) -> int | None:
        """The number of a message that was written before it had an id; it has one now, or still has none."""
        for seq, (key, nameless) in self._view.nameless.items():
            is_free = seq not in self._used and key == to
            if is_free and are_same(message, same := named(nameless, message.id)):
                if not message.id:
                    return seq
                self._used.add(seq)
                self.ids[seq] = short(message.id)
                self._messages[-seq] = same
                self._by_id[message.id] = -seq
                return -seq
        return None

    def _listed_already(self, message: BaseMessage, to: Key) -> int | None:
        """The number of a message without an id that became part of the conversation before it was written."""
        if message.id:
            return None
        listed = self._view.listed.items()
        return next((seq for seq, (key, known) in listed if key == to and are_same(message, known)), None)

    def _added(self, message: BaseMessage) -> int:
        """Make a message part of the conversation; the number that it will have."""
        seq = self.next_seq
        records = records_of(message, self._codec)
        self._records += records
        self._messages[seq] = read_back(message, records[0], self._codec)
        if message.id:
            self._by_id[message.id] = seq
        return seq

    def held(self, seq: Any) -> BaseMessage:
        """A message by the number of its record."""
        return self._messages.get(seq) or self._view.held(seq)

    def records(self) -> list[NewRecord]:
        """What is to be stored."""
        return numbered(self._records, self._first)

    def note(self, ahead: Ahead) -> None:
        """Have the view know them from now on."""
        for seq in self._used:
            ahead.used(seq)
        for seq, message in self._messages.items():
            ahead.message(seq, message)
        for seq, key in self._nameless.items():
            ahead.nameless(seq, key, self._messages[seq])
        for seq in self._listed:
            ahead.listed(seq, self._written_to, self.held(seq))


def is_kept_as_it_is(item: Any) -> bool:
    """Whether this is a message that will be in the conversation as it was written, perhaps with an id."""
    return (
        isinstance(item, BaseMessage) and item.type != "remove" and (bool(item.id) or type(item) in _KEPT_AS_THEY_ARE)
    )
