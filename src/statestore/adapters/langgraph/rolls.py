"""A long list of messages, held so that it can be compared with another one, or handed out, in as little as it takes.

A turn of a conversation compares the whole history twice and hands it out once. Everything here is done by the C code
of the interpreter, over lists that are kept ready, and allocates nothing that the collector of garbage would look at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import attrgetter, eq, is_
from typing import Any, Final

from langchain_core.messages import BaseMessage

from statestore.adapters.langgraph.sameness import are_alike, are_same, doubtful_fields

_values_of: Final[Callable[[BaseMessage], dict[str, Any]]] = attrgetter("__dict__")
_extra_of: Final[Callable[[BaseMessage], Any]] = attrgetter("__pydantic_extra__")


class Roll:
    """Messages that are never handed out themselves.

    The roll of a list that grew shares what it has with the roll of the list that it was: each knows its own size.
    """

    __slots__ = ("_doubtful", "_extras", "_kinds", "_messages", "_values", "size")

    def __init__(self, messages: list[BaseMessage]) -> None:
        self.size = len(messages)
        self._messages = messages
        self._values = list(map(_values_of, messages))
        self._kinds: list[Any] = list(map(type, messages))
        self._extras = list(map(_extra_of, messages)) if any(map(_extra_of, messages)) else None
        self._doubtful = [(index, name) for index, one in enumerate(messages) for name in doubtful_fields(one)]

    def grown(self, same: int, new: Sequence[BaseMessage]) -> Roll:
        """The roll of a list that begins with so many messages of this one, and goes on with new ones."""
        more = Roll(list(new))
        if same < len(self._messages) or self._extras is not None or more._extras is not None:
            return Roll([*self._messages[:same], *new])
        roll = Roll.__new__(Roll)
        roll.size = same + more.size
        roll._messages, roll._values, roll._kinds = self._messages, self._values, self._kinds
        roll._doubtful, roll._extras = self._doubtful, None
        roll._messages += more._messages
        roll._values += more._values
        roll._kinds += more._kinds
        roll._doubtful += [(same + index, name) for index, name in more._doubtful]
        return roll

    def message(self, index: int) -> BaseMessage:
        """One of the messages."""
        return self._messages[index]

    def is_as(self, others: list[BaseMessage]) -> bool:
        """Whether as many messages, one by one, are equal to these in everything."""
        return len(others) == self.size and self._begins_like(others)

    def common(self, others: list[Any]) -> int:
        """How many messages are the same at the beginning of this and another list; what is no message is not."""
        shorter = min(len(others), self.size)
        if self._begins_like(others[:shorter]):
            return shorter
        equal = bisect_left(range(1, shorter + 1), True, key=lambda size: not self._begins_like(others[:size]))
        return next((i for i in range(equal, shorter) if not are_same(others[i], self._messages[i])), shorter)

    def _begins_like(self, others: list[BaseMessage]) -> bool:
        """Whether these begin with messages that are equal to the others. (``==`` is the same, and far slower.)"""
        if not all(map(is_, map(type, others), self._kinds)):
            return False
        try:
            return self._is_equal_to(others) and self._is_like(others)
        except Exception:  # noqa: BLE001 - whatever the comparison of somebody's own values raises
            return False

    def _is_equal_to(self, others: list[BaseMessage]) -> bool:
        if not all(map(eq, map(_values_of, others), self._values)):
            return False
        if self._extras is None:
            return not any(map(_extra_of, others))
        return all(map(eq, map(_extra_of, others), self._extras))

    def _is_like(self, others: list[BaseMessage]) -> bool:
        """Whether messages that are equal to these hold values of the same types."""
        values = self._values
        doubtful = self._doubtful[: bisect_left(self._doubtful, (len(others), ""))]
        if not all(are_alike(_values_of(others[index])[name], values[index][name]) for index, name in doubtful):
            return False
        return self._extras is None or all(map(are_alike, map(_extra_of, others), self._extras))
