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
    """Messages that are never handed out themselves.

    The roll of a list that grew shares what it has with the roll of the list that it was: each knows its own size.
    """

    __slots__ = ("_extras", "_kinds", "_messages", "_values", "size")

    def __init__(self, messages: list[BaseMessage]) -> None:
        self.size = len(messages)
        self._messages = messages
        self._values = list(map(_values_of, messages))
        self._kinds: list[Any] = list(map(type, messages))
        self._extras = list(map(_extra_of, messages)) if any(map(_extra_of, messages)) else None

    def grown(self, same: int, new: Sequence[BaseMessage]) -> Roll:
        """The roll of a list that begins with so many messages of this one, and goes on with new ones."""
        more = Roll(list(new))
        if same < len(self._messages) or self._extras is not None or more._extras is not None:
            return Roll([*self._messages[:same], *new])
        roll = Roll.__new__(Roll)
        roll.size = same + more.size
        roll._messages, roll._values, roll._kinds = self._messages, self._values, self._kinds
        roll._extras = None
        roll._messages += more._messages
        roll._values += more._values
        roll._kinds += more._kinds
        return roll

    def message(self, index: int) -> BaseMessage:
        """One of the messages."""
        return self._messages[index]

    def is_as(self, others: list[BaseMessage]) -> bool:
        """Whether as many messages, one by one, are equal to these in everything."""
        return len(others) == self.size and self._begins_like(others)

    def common(self, others: list[Any]) -> int:
        """How many messages are equal at the beginning of this and another list; what is no message is not equal."""
        shorter = min(len(others), self.size)
        try:
            if self._begins_like(others[:shorter]):
                return shorter
        except AttributeError:  # something else among the messages
            shorter = next((i for i, item in enumerate(others) if not isinstance(item, BaseMessage)), shorter)
        low, high = 0, min(shorter, self.size)
        while low < high:
            middle = (low + high + 1) // 2
            if self._begins_like(others[:middle]):
                low = middle
            else:
                high = middle - 1
        return low

    def _begins_like(self, others: list[BaseMessage]) -> bool:
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


def are_same_but_for_the_id(one: BaseMessage, nameless: BaseMessage) -> bool:
    """Whether a message is equal in everything to one that has no id, but for the id that it has perhaps."""
    return (
        one.__class__ is nameless.__class__
        and one.content == nameless.content
        and dict(one.__dict__, id=None) == dict(nameless.__dict__)
        and (one.__pydantic_extra__ or {}) == (nameless.__pydantic_extra__ or {})
    )
