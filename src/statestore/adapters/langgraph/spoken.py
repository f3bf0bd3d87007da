"""Messages on their way into a thread's conversation: which are there already, and the numbers of new ones."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage

from statestore.adapters.langgraph.ahead import Ahead
from statestore.adapters.langgraph.conversation import records_of
from statestore.adapters.langgraph.messages import twin
from statestore.adapters.langgraph.rolls import are_same
from statestore.adapters.langgraph.sessions import numbered
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import View
from statestore.engine import NewRecord
from statestore.records import Record


class Spoken:
    """The messages that one commit adds to what a view knows. The commit must be made at the view's version."""

    def __init__(self, view: View, codec: ValueCodec) -> None:
        self._view = view
        self._codec = codec
        self._first = view.next_seq
        self._records: list[Record] = []
        self._messages: dict[int, BaseMessage] = {}
        self._by_id: dict[str, int] = {}

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

    def added(self, message: BaseMessage) -> int:
        """Make a message part of the conversation; the number that it will have."""
        seq = self.next_seq
        self._records += records_of(message, self._codec)
        self._messages[seq] = twin(message)
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
        for seq, message in self._messages.items():
            ahead.message(seq, message)


def is_identified(item: Any) -> bool:
    """Whether this is a message that can be told from others of the same words."""
    return isinstance(item, BaseMessage) and item.type != "remove" and bool(item.id)
