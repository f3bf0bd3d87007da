"""LangChain's messages as plain fields, and back exactly; copies of them, and whether two are the same.

Only the framework's own message classes are taken apart here. Others go through the serializer, which knows what it may
import.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from math import isfinite
from typing import Any, Final, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    ToolMessage,
)

from statestore.adapters.langgraph.sameness import are_equal

_CLASSES: Final[dict[str, type[BaseMessage]]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
    "AIMessageChunk": AIMessageChunk,
    "HumanMessageChunk": HumanMessageChunk,
}
_SIMPLE: Final = frozenset((str, type(None), int, float, bool))
_set: Final = object.__setattr__


def message_fields(message: BaseMessage) -> dict[str, Any] | None:
    """A message's fields as JSON, those with their default left out; ``None`` if it would not come back the same."""
    if _CLASSES.get(message.type) is not message.__class__:
        return None
    try:
        fields = message.model_dump(exclude_defaults=True)  # which compares, and what is no plain value may refuse that
        fields["type"] = message.type
        return fields if _is_plain(fields) and are_equal(message_of(fields), message) else None
    except (ValueError, TypeError):
        return None


def message_of(fields: dict[str, Any]) -> BaseMessage:
    """The message with these fields, which are its own from now on.

    What was a message once need not be validated again: this takes a tenth of the time, and whoever stores a message
    sees first that it comes back the same.
    """
    kind = _CLASSES[fields["type"]]
    defaults, mutable = _defaults_of(kind)
    if not fields.keys() <= defaults.keys():
        return kind(**fields)
    values = defaults | fields
    for key, empty in mutable:
        if key not in fields:
            values[key] = empty()
    return _made(kind, values, {}, set(fields))


@cache
def _defaults_of(kind: type[BaseMessage]) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """What a message of a class holds by default, and which of that must not be shared."""
    needed = {"role": "", "name": "", "tool_call_id": ""}
    required = {name: needed[name] for name, info in kind.model_fields.items() if info.is_required() and name in needed}
    values = kind(content="", **required).__dict__
    return dict(values), [(key, type(value)) for key, value in values.items() if value.__class__ in (dict, list)]


def _made(kind: type[BaseMessage], values: dict[str, Any], extra: Any, fields_set: set[str]) -> BaseMessage:
    message = kind.__new__(kind)
    _set(message, "__dict__", values)
    _set(message, "__pydantic_extra__", extra)
    _set(message, "__pydantic_fields_set__", fields_set)
    _set(message, "__pydantic_private__", None)
    return message


def twin(message: BaseMessage) -> BaseMessage:
    """A copy that shares nothing that could be changed. (``model_copy(deep=True)`` gives the same, more slowly.)"""
    values = message.__dict__.copy()
    for key, value in values.items():
        if value.__class__ not in _SIMPLE:
            values[key] = copied(value)
    extra = message.__pydantic_extra__
    return _made(message.__class__, values, copied(extra) if extra else {}, message.__pydantic_fields_set__.copy())


def named(message: BaseMessage, id: str | None) -> BaseMessage:
    """The same message with an id. It shares everything else."""
    values = {**message.__dict__, "id": id}
    return _made(message.__class__, values, message.__pydantic_extra__, message.__pydantic_fields_set__ | {"id"})


def copied(value: Any) -> Any:
    """A copy that shares nothing that could be changed."""
    if value.__class__ is dict:
        return {key: copied(item) for key, item in cast("dict[Any, Any]", value).items()} if value else {}
    if value.__class__ is list:
        return [copied(item) for item in cast("list[Any]", value)] if value else []
    return value if value.__class__ in _SIMPLE else deepcopy(value)


def _is_plain(value: Any) -> bool:
    """Whether a value is made of JSON's own types, and within our limits, so that it comes back as it is."""
    kind = value.__class__
    if kind is str:
        return is_text(value)
    if kind is dict:
        return all(key.__class__ is str and is_text(key) and _is_plain(item) for key, item in value.items())
    if kind is list:
        return all(map(_is_plain, value))
    return is_plain_number(value)


def is_plain_number(value: Any) -> bool:
    """Whether a value is a number, a boolean or nothing, as JSON has them."""
    kind = value.__class__
    if kind is int:
        return -(2**63) <= value < 2**63
    return value is None or kind is bool or (kind is float and isfinite(value))


def is_text(text: str) -> bool:
    """Whether a text is Unicode; the framework's own serializer replaces what is not."""
    return text.isascii() or not any("\ud800" <= ch <= "\udfff" for ch in text)
