"""A thread's messages as records that everybody can read, and back exactly.

What the user said is a user message, what the model said an agent response. The rest of the message is beside the
text, which is not stored twice. Calls of tools and their results are events whose data any framework can be handed;
what else there is (a system prompt, a message of a class that only the serializer knows) is an event too.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from msgspec import UNSET

from statestore.adapters.items import SYSTEM, TOOL_CALL, TOOL_RESULT
from statestore.adapters.langgraph.messages import message_fields, message_of
from statestore.adapters.langgraph.notes import FRAMEWORK, Line, note_text
from statestore.adapters.langgraph.values import ValueCodec
from statestore.records import AGENT, USER, Event, Record, decode_body
from statestore.timestamps import now_text

_SEALED: Final = "sealed"
_HUMAN: Final = "human"
"""The type of a message that has none beside its record."""


def records_of(message: BaseMessage, codec: ValueCodec) -> list[Record]:
    """A message as records: the first one is the message itself, others show what it holds besides."""
    if not codec.is_readable:
        return [_event("message", None, {_SEALED: codec.encoded(message)})]
    fields = message_fields(message)
    beside: dict[str, Any] = {_SEALED: codec.encoded(message)} if fields is None else dict(fields)
    text = str(message.text).encode("utf-8", "replace").decode()
    calls = _calls_of(message, codec)
    if calls and not text:
        return [_event(TOOL_CALL, calls[0], beside), *(_event(TOOL_CALL, call, False) for call in calls[1:])]
    if isinstance(message, (HumanMessage, AIMessage, ToolMessage)) and beside.get("content") == text:
        del beside["content"]
    if beside.get("type") == _HUMAN:
        del beside["type"]
    if isinstance(message, (HumanMessage, AIMessage)):
        said = _said(USER if isinstance(message, HumanMessage) else AGENT, text, beside)
        return [said, *(_event(TOOL_CALL, call, False) for call in calls)]
    if isinstance(message, ToolMessage):
        result = {"id": message.tool_call_id, "output": text} | ({"name": message.name} if message.name else {})
        return [_event(TOOL_RESULT, result, beside)]
    kind = SYSTEM if isinstance(message, SystemMessage) else "message"
    return [_event(kind, {"content": text}, beside)]


def read_back(message: BaseMessage, record: Record, codec: ValueCodec) -> BaseMessage:
    """The message as its record will give it back: what the serializer does not keep is not there."""
    beside = record.extra[FRAMEWORK]
    found = codec.decoded(beside[_SEALED]) if _SEALED in beside else message
    return found if isinstance(found, BaseMessage) else message


def message_in(line: Line, codec: ValueCodec, name: str | None) -> BaseMessage:
    """The message that a record holds, with the id that it was given later, if it was."""
    assert line.mark is not UNSET
    beside: dict[str, Any] = msgspec.json.decode(line.mark)
    if _SEALED in beside:
        message: BaseMessage = codec.decoded(beside[_SEALED])
        message.id = name or message.id
        return message
    if name is not None:
        beside["id"] = name
    if "content" not in beside:
        beside["content"] = line.text()
    beside.setdefault("type", _HUMAN)
    return message_of(beside)


def _said(kind: str, text: str, beside: dict[str, Any]) -> Record:
    """A message or a response that has nothing but its text and what is beside it."""
    return decode_body(kind, note_text({"content": text, "timestamp": now_text(), FRAMEWORK: beside}))


def _event(kind: str, data: Any, beside: Any) -> Record:
    return Event(kind, data, extra={FRAMEWORK: beside})


def _calls_of(message: BaseMessage, codec: ValueCodec) -> list[dict[str, Any]]:
    if not isinstance(message, AIMessage):
        return []
    return [
        {"id": call["id"] or "", "name": call["name"], "arguments": codec.encoded(call["args"])}
        for call in message.tool_calls
    ]
