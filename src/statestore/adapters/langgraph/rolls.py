"""A long list of messages, held so that it can be compared with another one, or handed out, in as little as it takes.

A turn of a conversation compares the whole history twice and hands it out once. Everything here is done by the C code
of the interpreter, over lists that are kept ready, and allocates nothing that the collector of garbage would look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter, eq, is_
from typing import Any, Final

from langchain_core.messages import BaseMessage

_values_of: Final[Callable[[BaseMessage], dict[str, Any]]] = attrgetter("__dict__")
_extra_of: Final[Callable[[BaseMessage], Any]] = attrgetter("__pydantic_extra__")


class Roll:
    """Messages that are never handed out themselves."""

    __slots__ = ("_extras", "_kinds", "_values", "messages")

    def __init__(self, messages: list[BaseMessage]) -> None:
        self.messages = messages
        self._values = list(map(_values_of, messages))
        self._kinds = list(map(type, messages))
        self._extras = list(map(_extra_of, messages)) if any(map(_extra_of, messages)) else None

    def grown(self, same: int, new: Sequence[BaseMessage]) -> Roll:
        """The roll of a list that begins with so many messages of this one, and goes on with new ones."""
        if same < len(self.messages) or self._extras is not None:
            return Roll([*self.messages[:same], *new])
        roll, more = Roll.__new__(Roll), Roll(list(new))
        roll.messages = self.messages + more.messages
        roll._values = self._values + more._values
        roll._kinds = self._kinds + more._kinds
        roll._extras = None if more._extras is None else list(map(_extra_of, roll.messages))
        return roll

    def is_as(self, others: Sequence[BaseMessage]) -> bool:
        """Whether as many messages, one by one, are equal to these in everything."""
        return len(others) == len(self.messages) and self._begins_like(others)

    def common(self, others: Sequence[Any]) -> int:
        """How many messages are equal at the beginning of this and another list; what is no message is not equal."""
        shorter = min(len(others), len(self.messages))
        try:
            if self._begins_like(others[:shorter]):
                return shorter
        except AttributeError:  # something else among the messages
            shorter = next((i for i, item in enumerate(others) if not isinstance(item, BaseMessage)), shorter)
        low, high = 0, shorter
        while low < high:
            middle = (low + high + 1) // 2
            if self._begins_like(others[:middle]):
                low = middle
            else:
                high = middle - 1
        return low

    def _begins_like(self, others: Sequence[BaseMessage]) -> bool:
        """Whether these begin with messages that are equal to the others. (``==`` is the same, and far slower.)"""
        if not all(map(is_, map(type, others), self._kinds)):
            return False
        if not all(map(eq, map(_values_of, others), self._values)):
            return False
        if self._extras is None:
            return not any(map(_extra_of, others))
        return all(map(eq, map(_extra_of, others), self._extras))


def are_same(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether two messages are equal in everything."""
    return (
        one.__class__ is other.__class__
        and one.__dict__ == other.__dict__
        and (one.__pydantic_extra__ or {}) == (other.__pydantic_extra__ or {})
    )
