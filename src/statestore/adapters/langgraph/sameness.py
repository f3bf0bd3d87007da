"""Whether two messages are the same.

``==`` alone does not tell: 1 is equal to ``True`` and to 1.0, what is no number is equal to nothing, not even itself,
and some values (arrays, for one) cannot be compared at all. Where it leaves a doubt, types count, or the bytes that the
framework's serializer makes of a message.
"""

from __future__ import annotations

from marshal import dumps
from typing import Any, Final, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

_bytes_of: Final = JsonPlusSerializer().dumps_typed
_WITHOUT_REFERENCES: Final = 2
"""The version of the interpreter's own format in which the bytes tell nothing but values and their types."""


def are_same(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether two messages are equal in everything, or would be stored as the same bytes."""
    return one.__class__ is other.__class__ and (are_equal(one, other) or _are_stored_alike(one, other))


def are_equal(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether two messages are equal in everything, types too; not if anything in them cannot be compared."""
    try:
        return (
            one.__class__ is other.__class__
            and one.__dict__ == other.__dict__
            and (one.__pydantic_extra__ or {}) == (other.__pydantic_extra__ or {})
            and are_alike(one.__dict__, other.__dict__)
            and are_alike(one.__pydantic_extra__ or {}, other.__pydantic_extra__ or {})
        )
    except Exception:  # noqa: BLE001 - whatever the comparison of somebody's own values raises
        return False


def doubtful_fields(message: BaseMessage) -> list[str]:
    """The fields for which ``==`` does not tell all: those with anything but texts in them."""
    return [
        name
        for name, value in message.__dict__.items()
        if value.__class__ is not str and value is not None and not _is_of_texts(value)
    ]


def are_alike(one: Any, other: Any) -> bool:
    """Whether values that are equal by ``==`` are of the same types, with all that is in them."""
    try:
        is_told = dumps(one, _WITHOUT_REFERENCES) == dumps(other, _WITHOUT_REFERENCES)
    except ValueError:  # there is something in them that the interpreter has no bytes for
        is_told = False
    return is_told or _are_alike(one, other)


def _is_of_texts(value: Any) -> bool:
    kind = value.__class__
    if kind is dict:
        return all(map(_is_of_texts, cast("dict[Any, Any]", value).values()))
    if kind is list:
        return all(map(_is_of_texts, cast("list[Any]", value)))
    return kind is str or value is None


def _are_alike(one: Any, other: Any) -> bool:
    kind = one.__class__
    if kind is not other.__class__:
        return False
    if kind is dict:
        return all(_are_alike(item, other[key]) for key, item in cast("dict[Any, Any]", one).items())
    return kind not in (list, tuple) or all(map(_are_alike, one, other))


def _are_stored_alike(one: BaseMessage, other: BaseMessage) -> bool:
    if one.id != other.id or _say_different_texts(one, other):
        return False
    try:
        return _bytes_of(one) == _bytes_of(other)
    except Exception:  # noqa: BLE001 - what has no bytes is refused where it is to be stored
        return False


def _say_different_texts(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether two messages can be told apart without their bytes. (The serializer replaces what is not Unicode.)"""
    texts = one.content, other.content
    said = [text.encode("utf-8", "replace") if isinstance(text, str) else b"" for text in texts]
    return said[0] != said[1]
