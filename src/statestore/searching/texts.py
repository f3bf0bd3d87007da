"""Which text of a record can be searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from statestore.records import AGENT, USER

TITLE: Final = "title"
TITLE_SEQ: Final = 0
"""What a title has for a kind and for a number, among the records that are found."""


class _Said(Struct):
    content: str


class _Happened(Struct):
    data: Any = None


_decode_said = msgspec.json.Decoder(_Said).decode
_decode_happened = msgspec.json.Decoder(_Happened).decode


def text_in(kind: str, body: bytes) -> str:
    """The text of a record that can be searched: what was said, or all texts in an event's data, one per line."""
    try:
        if kind in (USER, AGENT):
            return _decode_said(body).content
        return "\n".join(_texts_in(_decode_happened(body).data))
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def text_to_index(kind: str, body: bytes) -> str:
    """The same; nothing if it is no record, which ``check()`` tells."""
    try:
        return text_in(kind, body)
    except msgspec.DecodeError:
        return ""


def _texts_in(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting += reversed(cast("list[Any]", value))
        elif isinstance(value, dict):
            waiting += reversed(cast("dict[str, Any]", value).values())
