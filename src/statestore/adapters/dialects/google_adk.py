"""The events of Google's ADK, as records and as turns. They are plain JSON here; the framework is not needed.

An event is what its own ``model_dump_json(exclude_none=True)`` gives: an author, a content of parts (texts, thoughts,
function calls and responses, data), and actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from statestore.adapters.items import REASONING, TOOL_CALL, TOOL_RESULT, agent_response, aside, event, user_message
from statestore.adapters.parts import dicts_in, fields_in
from statestore.adapters.turns import Dialect, Message, Role, Said, ToolCall, ToolResult, Turn, json_of, messages_in
from statestore.records import Record

NAME: Final = "google-adk"
_USER: Final = "user"
_AGENT: Final = "assistant"
"""The author of what another framework's agent said."""
_SYSTEM: Final = "system"
_ACTIONS: Final = {
    "compaction": "compaction",
    "rewind_before_invocation_id": "rewind",
    "transfer_to_agent": "transfer",
    "agent_state": "checkpoint",
    "end_of_agent": "checkpoint",
    "state_delta": "state",
    "artifact_delta": "artifact",
}
"""What an event without a content is called, by the first of its actions that is set."""


def records_of(item: Any) -> list[Record]:
    """The records for an event: what was said, or what happened; calls that came with a text follow it as asides."""
    fields = fields_in(item)
    parts = _parts_of(fields)
    said = _said_in(fields, parts)
    calls = [part["function_call"] for part in parts if "function_call" in part]
    results = [part["function_response"] for part in parts if "function_response" in part]
    if said:
        record = user_message if _role_of(fields) == "user" else agent_response
        asides = [aside(NAME, TOOL_CALL, call) for call in calls]
        asides += [aside(NAME, TOOL_RESULT, result) for result in results]
        return [record(NAME, said, item), *asides]
    if calls or results:
        return [event(NAME, TOOL_CALL if calls else TOOL_RESULT, item)]
    return [event(NAME, _kind_of(fields, parts), item)]


def _kind_of(fields: dict[str, Any], parts: Sequence[dict[str, Any]]) -> str:
    if fields.get("error_code") or fields.get("error_message"):
        return "error"
    if any(part.get("thought") for part in parts):
        return REASONING
    actions = fields_in(fields.get("actions"))
    for name, kind in _ACTIONS.items():
        if actions.get(name):
            return kind
    return "output" if "output" in fields else "item"


def _said_in(fields: dict[str, Any], parts: Sequence[dict[str, Any]]) -> str:
    """What there is to read: the parts, each on lines of its own, or what was heard or spoken."""
    shown = [text for text in map(_shown, parts) if text]
    if not shown:
        heard = fields_in(fields.get("input_transcription")) or fields_in(fields.get("output_transcription"))
        return _text(heard.get("text"))
    return "\n".join(shown)


def _shown(part: dict[str, Any]) -> str:
    """What a person sees of a part; nothing for thoughts, calls and responses."""
    if part.get("thought"):
        return ""
    if "text" in part:
        return _text(part["text"])
    if "executable_code" in part:
        return f"```\n{_text(fields_in(part['executable_code']).get('code'))}\n```"
    if "code_execution_result" in part:
        return f"```\n{_text(fields_in(part['code_execution_result']).get('output'))}\n```"
    for name in ("inline_data", "file_data"):
        if name in part:
            data = fields_in(part[name])
            return f"[{_text(data.get('display_name')) or _text(data.get('mime_type')) or name}]"
    return ""


def _turns_of(item: Any) -> Sequence[Turn]:
    fields = fields_in(item)
    role = _role_of(fields)
    turns: list[Turn] = []
    for part in _parts_of(fields):
        if "function_call" in part:
            call = fields_in(part["function_call"])
            turns.append(ToolCall(_text(call.get("id")), _text(call.get("name")), json_of(call.get("args") or {})))
        elif "function_response" in part:
            result = fields_in(part["function_response"])
            output = _output_of(result.get("response"))
            turns.append(ToolResult(_text(result.get("id")), json_of(output), _text(result.get("name")) or None))
        elif text := _shown(part):
            last = turns[-1] if turns else None
            if isinstance(last, Said):
                turns[-1] = Said(role, f"{last.text}\n{text}")
            else:
                turns.append(Said(role, text))
    if not turns and (heard := _said_in(fields, ())):
        turns.append(Said(role, heard))
    return turns


def _output_of(response: Any) -> Any:
    """What a tool gave back: ADK wraps what is no object as ``{"result": …}``."""
    fields = fields_in(response)
    return next(iter(fields.values())) if list(fields) in (["result"], ["output"]) else response


def _items_of(turns: Iterable[Turn]) -> list[Any]:
    """Turns as events without ids and times: ADK gives them their own when it loads them."""
    names: dict[str, str] = {}
    items: list[dict[str, Any]] = []
    for message in messages_in(turns):
        if isinstance(message, ToolResult):
            _add_result(items, message, message.name or names.get(message.id, "tool"))
        else:
            names |= {call.id: call.name for call in message.calls}
            items.append(_item_of(message))
    return items


def _item_of(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": message.text}] if message.text or not message.calls else []
    for call in message.calls:
        parts.append({"function_call": {"id": call.id, "args": call.arguments_by_name, "name": call.name}})
    if message.role == "assistant":
        return _event(_AGENT, "model", parts)
    return _event(_USER if message.role == "user" else _SYSTEM, "user", parts)


def _add_result(items: list[dict[str, Any]], result: ToolResult, name: str) -> None:
    """Add a tool's result: to the event before, if that holds results too, as models want those of one turn."""
    part = {"function_response": {"id": result.id, "name": name, "response": _response_of(result.output)}}
    if items and any("function_response" in before for before in _parts_of(items[-1])):
        items[-1]["content"]["parts"].append(part)
    else:
        items.append(_event(_AGENT, "user", [part]))


def _response_of(output: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(output, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {"result": output}


def _event(author: str, role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": {"parts": parts, "role": role}, "author": author}


def _loaded(items: list[Any]) -> list[Any]:
    from statestore.adapters.google_adk.events import event_of  # noqa: PLC0415 - the framework is needed only here

    return [event_of(msgspec.json.encode(item)) for item in items]


def _role_of(fields: dict[str, Any]) -> Role:
    author = fields.get("author")
    if author in (_USER, _SYSTEM):
        return "user" if author == _USER else "system"
    return "user" if fields.get("input_transcription") and not fields.get("content") else "assistant"


def _parts_of(fields: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts_in(fields_in(fields.get("content")).get("parts"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
