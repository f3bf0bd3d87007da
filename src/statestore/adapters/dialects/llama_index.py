"""The chat messages of LlamaIndex, as records and as turns, in the form that ``model_dump(mode="json")`` gives them."""

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

NAME: Final = "llama-index"
_UNSEEN: Final = frozenset(("tool_call", "thinking", "cache"))
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
}


def records_of(item: dict[str, Any], **notes: Any) -> list[Record]:
    """The records for a message: itself, and its tool calls where it has a text too."""
    text, calls, role = _text_in(item), _calls_in(item), str(item.get("role", "user"))
    match _ROLES.get(role):
        case "user":
            return [user_message(NAME, text, item, **notes)]
        case "assistant" if text or not calls:
            asides = (aside(NAME, TOOL_CALL, call, **notes) for call in calls)
            return [agent_response(NAME, text, item, **notes), *asides]
        case "assistant":
            return [event(NAME, TOOL_CALL, item, **notes)]
        case "system":
            return [event(NAME, SYSTEM, item, **notes)]
        case None:
            kind = TOOL_RESULT if role in ("tool", "function") else kind_for(role)
            return [event(NAME, kind, item, **notes)]


def _text_in(item: dict[str, Any]) -> str:
    return shown(item.get("blocks"), type_field="block_type", unseen=_UNSEEN)


def _calls_in(item: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a message: its blocks', or those beside them."""
    blocks = [block for block in dicts_in(item.get("blocks")) if block.get("block_type") == "tool_call"]
    if blocks:
        return [
            call_shown(block.get("tool_call_id"), block.get("tool_name"), block.get("tool_kwargs", {}))
            for block in blocks
        ]
    beside = dicts_in(fields_in(item.get("additional_kwargs")).get("tool_calls"))
    called = [(call.get("id"), call["function"]) for call in beside if isinstance(call.get("function"), dict)]
    return [call_shown(named, function.get("name"), function.get("arguments", "")) for named, function in called]


def _turns_of(item: Any) -> Sequence[Turn]:
    role = str(item.get("role", "user"))
    text = _text_in(item)
    if role in ("tool", "function"):
        fields = fields_in(item.get("additional_kwargs"))
        return (ToolResult(str(fields.get("tool_call_id") or ""), text, fields.get("name")),)
    if role not in _ROLES:
        return ()
    calls = [ToolCall.of(call) for call in _calls_in(item)]
    return (*((Said(_ROLES[role], text),) if text or not calls else ()), *calls)


def _items_of(turns: Sequence[Turn]) -> list[Any]:
    return [_item_of(message) for message in messages_in(turns)]


def _item_of(message: Message | ToolResult) -> dict[str, Any]:
    """A message; tool calls are written as OpenAI's models have them, which all versions of LlamaIndex read."""
    if isinstance(message, ToolResult):
        beside = {"tool_call_id": message.id} | ({"name": message.name} if message.name else {})
        return _message("tool", message.output, beside)
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.calls
    ]
    return _message(message.role, message.text, {"tool_calls": calls} if calls else {})


def _message(role: str, text: str, beside: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "additional_kwargs": beside, "blocks": [{"block_type": "text", "text": text}]}


def _loaded(items: list[Any]) -> list[Any]:
    from statestore.adapters.llama_index.chat_stores import messages_from  # noqa: PLC0415 - the framework is loaded when used

    return messages_from(items)


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
