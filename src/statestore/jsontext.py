"""JSON as text: values in, compact or pretty bytes out, and the limits every engine can keep.

The pretty form is exactly that of ``serde_json::to_string_pretty``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from statestore.errors import InvalidValue
from statestore.timestamps import text_of

MAX_DEPTH: Final = 100
MAX_LABEL_BYTES: Final = 500

_NOT_JSON: Final[tuple[type, ...]] = (bytes, bytearray, memoryview, set, frozenset)
_encode = msgspec.json.Encoder().encode
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def json_text(value: Any, where: str) -> bytes:
    """The value as compact JSON; `InvalidValue` naming ``where`` if it is not JSON within our limits.

    Besides plain values, structs, dataclasses and what else ``msgspec`` encodes are taken, as it encodes them.
    Bytes and sets are not: JSON has neither, and would give back something else.
    """
    try:
        return _encode(_checked(value, where, MAX_DEPTH))
    except RecursionError:
        raise InvalidValue(f"{where}: nested deeper than {MAX_DEPTH} levels, or holding itself") from None
    except UnicodeEncodeError:
        raise InvalidValue(f"{where}: a text holds a lone surrogate, which is not Unicode") from None


def _checked(value: Any, where: str, depth: int) -> Any:
    """The value in plain types; raises for what JSON, the seed or an engine could not keep."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int.__int__(value)
        if not -(2**63) <= number < 2**64:
            raise InvalidValue(f"{where}: a number does not fit in 64 bits, from -2**63 to 2**64-1: keep it as a text")
        return number
    if isinstance(value, float):
        fraction = float.__float__(value)
        if not math.isfinite(fraction):
            raise InvalidValue(f"{where}: {fraction} is not JSON")
        return fraction
    if depth == 0:
        raise InvalidValue(f"{where[:60]}…: nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        return _checked_members(cast("dict[Any, Any]", value), where, depth)
    if isinstance(value, (list, tuple)):
        return [_checked(v, f"{where}[{i}]", depth - 1) for i, v in enumerate(cast("list[Any]", value))]
    return _checked_other(value, where, depth)


def _checked_members(value: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
    for key in value:
        if not isinstance(key, str):
            raise InvalidValue(f"{where}: the key {key!r} is {type(key).__name__}, JSON keys are texts")
    return {str.__str__(k): _checked(v, f"{where}.{k}", depth - 1) for k, v in value.items()}


def _checked_other(value: Any, where: str, depth: int) -> Any:
    """What is no plain value: a moment, or something that msgspec can take apart."""
    if isinstance(value, datetime):
        try:
            return text_of(value)
        except InvalidValue as error:
            raise InvalidValue(f"{where}: {error}") from None
    if isinstance(value, _NOT_JSON):
        found = cast("object", value)
        raise InvalidValue(f"{where}: {type(found).__name__} is not JSON: use a list or a text, or save_bytes")
    try:
        plain = msgspec.to_builtins(value, builtin_types=(datetime, bytes, bytearray, memoryview), enc_hook=_refuse)
    except (TypeError, NotImplementedError, msgspec.MsgspecError, OverflowError) as error:
        raise InvalidValue(f"{where}: {error}") from error
    return _checked(plain, where, depth)


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


def json_string(text: str, where: str) -> bytes:
    """A text as a JSON string."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        raise InvalidValue(f"{where}: the text holds a lone surrogate, which is not Unicode") from None


def is_unicode(text: str) -> bool:
    """Whether a text has no lone surrogates, as the names of files have whose bytes are no text."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_text(text: object, where: str) -> str:
    """Give a text back; refuse anything else, and what is not Unicode."""
    if type(text) is str and text.isascii():  # as most are
        return text
    if not isinstance(text, str):
        raise InvalidValue(f"{where} is a text, not {type(text).__name__}")
    plain = text if type(text) is str else str.__str__(text)
    if not plain.isascii():
        json_string(plain, where)
    return plain


def check_label(text: object, where: str, *, may_be_empty: bool = True) -> str:
    """Give a short text (user, project, kind, key) back; it has no NUL and at most 500 bytes."""
    label = check_text(text, where)
    if not label and not may_be_empty:
        raise InvalidValue(f"{where} is empty")
    if "\0" in label:
        raise InvalidValue(f"{where} holds a NUL character")
    if len(label) * 4 > MAX_LABEL_BYTES and len(label.encode()) > MAX_LABEL_BYTES:
        raise InvalidValue(f"{where} is longer than {MAX_LABEL_BYTES} bytes of UTF-8")
    return label


def compact(text: bytes) -> bytes:
    """The same JSON without white space; numbers and strings keep their very text."""
    return msgspec.json.format(text, indent=-1)


def pretty(text: bytes) -> bytes:
    """The same JSON as ``serde_json::to_string_pretty`` lays it out."""
    return msgspec.json.format(text, indent=2)


def members(text: bytes) -> dict[str, bytes]:
    """The members of a JSON object in their order, each value as its text."""
    return {key: bytes(raw) for key, raw in _members.decode(text).items()}


def check_object(text: bytes) -> None:
    """Raise `msgspec.DecodeError` or `ValueError` for what is not a JSON object, or holds what is not UTF-8."""
    text.decode()
    members(text)


def joined_members(pairs: Mapping[str, bytes]) -> bytes:
    """A JSON object of these members, compact if they are."""
    return b"{" + b",".join(_encode(key) + b":" + value for key, value in pairs.items()) + b"}"


def joined_array(bodies: Iterable[bytes]) -> bytes:
    """A JSON array of these values."""
    return b"[" + b",".join(bodies) + b"]"


def changed_members(text: bytes, changes: Mapping[str, bytes], gone: Iterable[str]) -> bytes:
    """A JSON object with some members set, new ones last, and some removed; the others keep their text."""
    if not changes and not gone:
        return text
    pairs = {**members(text), **changes}
    for key in gone:
        pairs.pop(key, None)
    return joined_members(pairs)
