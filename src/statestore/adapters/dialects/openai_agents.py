"""The items of the OpenAI Agents SDK, as records and as turns. They are plain JSON; the SDK is not needed here.

A message has a role and a content, the rest has a type: https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from statestore.adapters.items import (
    REASONING,
    SYSTEM,
    TOOL_CALL,
    TOOL_RESULT,
    agent_response,
    event,
    kind_for,
    user_message,
)
from statestore.adapters.parts import fields_in, shown
from statestore.adapters.turns import Dialect, Role, Said, ToolCall, ToolResult, Turn, json_of
from statestore.errors import InvalidValue
from statestore.records import Record

NAME: Final = "openai-agents"
_KINDS: Final = {
    "function_call": TOOL_CALL,
    "function_call_output": TOOL_RESULT,
    "custom_tool_call": TOOL_CALL,
    "custom_tool_call_output": TOOL_RESULT,
    "reasoning": REASONING,
}
_ROLES: Final[dict[Any, Role]] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def record_of(item: Any) -> Record:
    """The record for an item. `InvalidValue` if it is no dict, or not JSON."""
    if not isinstance(item, Mapping):
        raise InvalidValue(f"an item of the OpenAI Agents SDK is a dict, not {type(item).__name__}: nothing was stored")
    fields = fields_in(item)
    role = _role_of(fields)
    if role == "user":
        return user_message(NAME, shown(fields.get("content")), item)
    if role == "assistant":
        return agent_response(NAME, shown(fields.get("content")), item)
    if role is not None:
        return event(NAME, SYSTEM, item)
    named = fields.get("type")
    return event(NAME, _KINDS[named] if isinstance(named, str) and named in _KINDS else kind_for(named), item)


def _role_of(fields: dict[str, Any]) -> Role | None:
    role = fields.get("role")
    if fields.get("type", "message") != "message" or "content" not in fields or not isinstance(role, str):
        return None
    return _ROLES.get(role)


def _turns_of(item: Any) -> Sequence[Turn]:
    fields = fields_in(item)
    role = _role_of(fields)
    if role is not None:
        return (Said(role, shown(fields["content"])),)
    called = str(fields.get("call_id", ""))
    match fields.get("type"):
        case "function_call" | "custom_tool_call" as kind:
            arguments = fields.get("arguments" if kind == "function_call" else "input", "")
            return (ToolCall(called, str(fields.get("name", "")), json_of(arguments)),)
        case "function_call_output" | "custom_tool_call_output":
            output = fields.get("output", "")
            return (ToolResult(called, shown(output) if isinstance(output, list) else json_of(output)),)
        case _:
            return ()


def _items_of(turns: Iterable[Turn]) -> list[Any]:
    return [_item_of(turn) for turn in turns]


def _item_of(turn: Turn) -> dict[str, Any]:
    match turn:
        case Said(role, text):
            return {"role": role, "content": text}
        case ToolCall(called, name, arguments):
            return {"type": "function_call", "call_id": called, "name": name, "arguments": arguments}
        case ToolResult(called, output):
            return {"type": "function_call_output", "call_id": called, "output": output}


DIALECT: Final = Dialect(_turns_of, _items_of, lambda item: (record_of(item),))
