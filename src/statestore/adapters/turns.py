"""The neutral form of a conversation: who said what, which tools were called, and what they gave back.

It is what one framework's items are turned into before they become another's. Text always has a turn; what has none
(reasoning, images, a framework's own notes) stays with the framework that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from statestore.records import Record

Role = Literal["user", "assistant", "system"]


class Said(Struct, frozen=True, tag=True):
    """A text, and whose it is."""

    role: Role
    text: str


class ToolCall(Struct, frozen=True, tag=True):
    """The agent called a tool. ``arguments`` is JSON text, as models write it."""

    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, shown: Mapping[str, Any]) -> ToolCall:
        """The call that an aside shows, whose arguments may be of any kind."""
        return cls(shown["id"], shown["name"], json_of(shown["arguments"]))

    @property
    def arguments_by_name(self) -> dict[str, Any]:
        """The arguments, decoded; what is not a JSON object is kept whole, under ``input``."""
        try:
            return msgspec.json.decode(self.arguments, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return {"input": self.arguments} if self.arguments else {}


class ToolResult(Struct, frozen=True, tag=True):
    """What a tool gave back, as text. The call it answers has the same ``id``; ``name`` is its tool, where known."""

    id: str
    output: str
    name: str | None = None


Turn = Said | ToolCall | ToolResult


def call_shown(called: Any, name: Any, arguments: Any) -> dict[str, Any]:
    """What an aside shows of a tool call: the fields of a `ToolCall`, the arguments as the framework has them."""
    return {"id": str(called or ""), "name": str(name or ""), "arguments": arguments}


def result_shown(called: Any, output: str) -> dict[str, Any]:
    """What an aside shows of what a tool gave back: the fields of a `ToolResult`."""
    return {"id": str(called or ""), "output": output}


class Message(Struct):
    """A text with the tool calls that followed it: how frameworks see them whose messages hold both."""

    role: Role
    text: str
    calls: list[ToolCall]


def messages_in(turns: Iterable[Turn]) -> list[Message | ToolResult]:
    """A conversation in messages: what the assistant said and the tools it then called are one."""
    found: list[Message | ToolResult] = []
    for turn in turns:
        last = found[-1] if found else None
        if isinstance(turn, Said):
            found.append(Message(turn.role, turn.text, []))
        elif isinstance(turn, ToolResult):
            found.append(turn)
        elif isinstance(last, Message) and last.role == "assistant":
            last.calls.append(turn)
        else:
            found.append(Message("assistant", "", [turn]))
    return found


class Dialect(Struct, frozen=True):
    """How a framework's stored items are read and written, as plain data: see `statestore.adapters.dialects`."""

    read: Callable[[Any], Sequence[Turn]]
    """The turns in a stored item; none for what has no counterpart."""
    write: Callable[[Sequence[Turn]], list[Any]]
    """The turns of a conversation as items: in the form in which the adapter stores them."""
    records: Callable[[Any], Sequence[Record]]
    """The records that the adapter stores an item as."""
    load: Callable[[list[Any]], list[Any]] = list
    """Stored items as the framework takes them for input; the same, unless the framework has classes for them."""


def json_of(value: Any) -> str:
    """A value as the text that a model would see: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
