"""``openai``: what was said, as chat-completions messages. A line for each session: ``{"messages": [...]}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec

from statestore.exchange.gathering import Entry, Part
from statestore.records import Event, UserMessage, decode_body
from statestore.stored import StoredRecord

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_encode = msgspec.json.Encoder().encode


class OpenAI:
    """The messages alone. An event counts if its data are themselves such a message; other events are left out."""

    has_contents = False

    def opening(self, entries: Sequence[Entry]) -> bytes:
        return b""

    def session(self, part: Part) -> bytes:
        self._before = b""
        return b'{"messages":['

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        messages = [_encode(message) for record in records if (message := message_of(record)) is not None]
        if not messages:
            return b""
        before, self._before = self._before, b","
        return before + b",".join(messages)

    def session_end(self) -> bytes:
        return b"]}\n"

    def closing(self) -> bytes:
        return b""


def message_of(record: StoredRecord) -> dict[str, Any] | None:
    """A record as a chat message, if it is one."""
    said = decode_body(record.kind, record.body)
    if isinstance(said, Event):
        data: Any = said.data
        role: Any = cast("dict[str, Any]", data).get("role") if isinstance(data, dict) else None
        return cast("dict[str, Any]", data) if isinstance(role, str) and role in ROLES else None
    return {"role": "user" if isinstance(said, UserMessage) else "assistant", "content": said.content}
