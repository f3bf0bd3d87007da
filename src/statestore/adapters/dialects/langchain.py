"""The messages of LangChain, as records and as turns, in the form that ``message_to_dict`` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from statestore.adapters.items import (
    SYSTEM,
    TOOL_CALL,
    TOOL_RESULT,
    agent_response,
    aside,
    event,
    kind_for,
    user_message,
)
from statestore.adapters.parts import dicts_in, fields_in, shown
from statestore.adapters.turns import Dialect, Message, Role, Said, ToolCall, ToolResult, Turn, call_shown, messages_in
from statestore.records import Record

NAME: Final = "langchain"
_UNSEEN: Final = frozenset(("tool_use", "tool_call", "thinking", "reasoning", "redacted_thinking", "function_call"))
_ROLES: Final[dict[str, Role]] = {"human": "user", "ai": "assistant", "system": "system"}
_TYPES: Final = {role: named for named, role in _ROLES.items()}
_CHUNKS: Final = {f"{name}MessageChunk": name.lower() for name in ("Human", "AI", "Tool", "Function", "System", "Chat")}


def records_of(item: dict[str, Any]) -> list[Record]:
    """The records for a message: itself, and its tool calls where it has a text too."""
    data = fields_in(item.get("data"))
    text, calls = shown(data.get("content"), unseen=_UNSEEN), _calls_in(data)
    match _type_of(item):
        case "human":
            return [user_message(NAME, text, item)]
        case "ai" if text or not calls:
            return [agent_response(NAME, text, item), *(aside(NAME, TOOL_CALL, call) for call in calls)]
        case "ai":
            return [event(NAME, TOOL_CALL, item)]
        case "tool" | "function":
            return [event(NAME, TOOL_RESULT, item)]
        case "system":
            return [event(NAME, SYSTEM, item)]
        case other:
            return [event(NAME, kind_for(other), item)]


def _type_of(item: dict[str, Any]) -> str:
    """The type of a message; a chunk of a stream counts as what it is a chunk of."""
    named = str(item.get("type", ""))
    return _CHUNKS.get(named, named)


def _calls_in(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        call_shown(call.get("id"), call.get("name"), call.get("args", {})) for call in dicts_in(data.get("tool_calls"))
    ]


def _turns_of(item: Any) -> Sequence[Turn]:
    data, named = fields_in(item.get("data")), _type_of(item)
    text = shown(data.get("content"), unseen=_UNSEEN)
    if named in ("tool", "function"):
        return (ToolResult(str(data.get("tool_call_id") or ""), text, data.get("name")),)
    if named == "chat":  # a message with a role of its own
        role = str(data.get("role", "")).lower()
        return (Said(_ROLES.get(role, "user" if role == "user" else "assistant"), text),)
    if named not in _ROLES:
        return ()
    calls = [ToolCall.of(call) for call in _calls_in(data)]
    return (*((Said(_ROLES[named], text),) if text or not calls else ()), *calls)


def _items_of(turns: Sequence[Turn]) -> list[Any]:
    return [_item_of(message) for message in messages_in(turns)]


def _item_of(message: Message | ToolResult) -> dict[str, Any]:
    if isinstance(message, ToolResult):
        return _message("tool", message.output, tool_call_id=message.id, name=message.name)
    calls = {"tool_calls": [_call(call) for call in message.calls]} if message.calls else {}
    return _message(_TYPES[message.role], message.text, **calls)


def _message(named: str, content: str, **fields: Any) -> dict[str, Any]:
    return {"type": named, "data": {"content": content, "type": named, **fields}}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "args": call.arguments_by_name, "type": "tool_call"}


def _loaded(items: list[Any]) -> list[Any]:
    from statestore.adapters.langchain import messages_from  # noqa: PLC0415 - the framework is loaded when used

    return messages_from(items)


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
