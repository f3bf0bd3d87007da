"""The messages of the Agent Framework, as records and as turns, in the form that ``Message.to_dict`` gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from statestore.adapters.items import (
    REASONING,
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
from statestore.adapters.turns import (
    Dialect,
    Message,
    Role,
    Said,
    ToolCall,
    ToolResult,
    Turn,
    call_shown,
    json_of,
    messages_in,
    result_shown,
)
from statestore.records import Record

NAME: Final = "agent-framework"
_UNSEEN: Final = frozenset(("function_call", "function_result", "text_reasoning", "usage"))
_ROLES: Final[dict[Any, Role]] = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}


def records_of(item: Any) -> list[Record]:
    """The records for a message: itself, and the tool calls and results in it where it has a text too."""
    fields = fields_in(item)
    contents = dicts_in(fields.get("contents"))
    text = shown(contents, unseen=_UNSEEN)
    calls = [_call(content) for content in contents if content.get("type") == "function_call"]
    results = [_result(content) for content in contents if content.get("type") == "function_result"]
    more = [
        *(aside(NAME, TOOL_CALL, call) for call in calls),
        *(aside(NAME, TOOL_RESULT, result) for result in results),
    ]
    match fields.get("role"):
        case "user" if text or not results:
            return [user_message(NAME, text, item), *more]
        case "assistant" if text or not _UNSEEN.intersection(str(content.get("type")) for content in contents):
            return [agent_response(NAME, text, item), *more]
        case "user" | "assistant":
            kind = TOOL_CALL if calls else TOOL_RESULT if results else REASONING
            return [event(NAME, kind, item)]
        case "tool":
            return [event(NAME, TOOL_RESULT, item)]
        case "system" | "developer":
            return [event(NAME, SYSTEM, item)]
        case other:
            return [event(NAME, kind_for(other), item)]


def _call(content: dict[str, Any]) -> dict[str, Any]:
    arguments = content.get("arguments")
    return call_shown(content.get("call_id"), content.get("name"), {} if arguments is None else arguments)


def _result(content: dict[str, Any]) -> dict[str, Any]:
    result = content.get("result")
    output = shown(content.get("items")) if result is None else json_of(result)
    return result_shown(content.get("call_id"), output)


def _turns_of(item: Any) -> Sequence[Turn]:
    fields = fields_in(item)
    role = _ROLES.get(fields.get("role"))
    turns: list[Turn] = []
    for content in dicts_in(fields.get("contents")):
        match content.get("type"):
            case "function_call":
                turns.append(ToolCall.of(_call(content)))
            case "function_result":
                turns.append(ToolResult(**_result(content)))
            case kind if role is not None and kind not in _UNSEEN:
                turns.append(Said(role, shown([content])))
            case _:
                pass  # reasoning stays with the framework that wrote it
    return turns


def _items_of(turns: Sequence[Turn]) -> list[Any]:
    return [_item_of(message) for message in messages_in(turns)]


def _item_of(message: Message | ToolResult) -> dict[str, Any]:
    if isinstance(message, ToolResult):
        return _message("tool", [{"type": "function_result", "call_id": message.id, "result": message.output}])
    said = [{"type": "text", "text": message.text}] if message.text or not message.calls else []
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    return _message(message.role, [*said, *calls])


def _message(role: str, contents: list[Any]) -> dict[str, Any]:
    return {"type": "message", "role": role, "contents": contents}


def _loaded(items: list[Any]) -> list[Any]:
    from statestore.adapters.agent_framework.history import messages_from  # noqa: PLC0415 - loaded when used

    return messages_from(items)


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
