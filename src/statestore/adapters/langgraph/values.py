"""A channel's value as JSON that people can read, and back exactly.

Plain JSON stays as it is, a message becomes its fields, and whatever else there is goes through the saver's own
serializer: ``{"$serde": ["msgpack", "…base64…"]}``. Nothing is ever pickled here. A saver with a serializer of its own
(one that encrypts, say) has every value go through that, messages too.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final, cast

import msgspec
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from statestore.adapters.langgraph.messages import copied, is_plain_number, is_text, message_fields, message_of
from statestore.errors import CorruptData, InvalidValue

MESSAGE: Final = "$message"
SERDE: Final = "$serde"
ESCAPED: Final = "$dict"
_DEPTH: Final = 60
"""Deeper than this, a value goes through the serializer whole: our JSON may be nested to 100."""


class ValueCodec:
    """Encodes and decodes with one serializer."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self.is_readable = type(serde) is JsonPlusSerializer
        """Whether values may be stored as people read them. Not if somebody chose another serializer."""

    def encoded(self, value: Any) -> Any:
        """The value as plain JSON types."""
        return self._encoded(value, _DEPTH) if self.is_readable else self._sealed(value)

    def decoded(self, stored: Any) -> Any:
        """The value behind plain JSON types."""
        if stored.__class__ is dict:
            return self._decoded_dict(stored)
        if stored.__class__ is list:
            return [self.decoded(item) for item in stored]
        return stored

    def _encoded(self, value: Any, depth: int) -> Any:
        kind = value.__class__
        if is_plain_number(value) or (kind is str and is_text(value)):
            return value
        if depth:
            if kind is list:
                return [self._encoded(item, depth - 1) for item in value]
            if kind is dict and all(key.__class__ is str and is_text(key) for key in value):
                plain = {key: self._encoded(item, depth - 1) for key, item in value.items()}
                return {ESCAPED: plain} if any(key.startswith("$") for key in plain) else plain
            if isinstance(value, BaseMessage) and (fields := message_fields(value)) is not None:
                return {MESSAGE: fields}
        return self._sealed(value)

    def _sealed(self, value: Any) -> Any:
        kind, data = self._serde.dumps_typed(value)
        if kind == "pickle":
            raise InvalidValue(f"{type(value).__name__} could only be pickled, and nothing is ever pickled here")
        return {SERDE: [kind, b64encode(data).decode()]}

    def _decoded_dict(self, stored: dict[str, Any]) -> Any:
        if len(stored) == 1:
            (key, inner) = next(iter(stored.items()))
            if key == MESSAGE:
                return message_of(copied(inner))
            if key == SERDE:
                return self._unsealed(inner)
            if key == ESCAPED:
                stored = inner
        return {key: self.decoded(item) for key, item in stored.items()}

    def _unsealed(self, inner: Any) -> Any:
        try:
            kind, data = cast("tuple[str, str]", inner)
            return self._serde.loads_typed((kind, b64decode(data, validate=True)))
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            raise CorruptData(f"a stored value cannot be read: {error}") from error
