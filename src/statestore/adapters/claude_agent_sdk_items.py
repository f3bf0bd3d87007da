"""The transcript entries of the Claude Agent SDK, as records and as turns. They are plain JSON; no SDK is needed here.

An entry is one line of a transcript: a ``type``, mostly a ``uuid``, and for what was said a ``message`` as the Messages
API has it, whose content is a text or a list of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

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
from statestore.adapters.turns import Dialect, Message, Said, ToolCall, ToolResult, Turn, json_of, messages_in
from statestore.records import Record

NAME: Final = "claude-agent-sdk"
_UNSEEN: Final = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))


def records_of(entry: Any) -> list[Record]:
    """The records for an entry: itself, and the tool calls and results in it where it has a text too."""
    content = _content_of(entry)
    text = shown(content, unseen=_UNSEEN)
    blocks = dicts_in(content)
    match fields_in(entry).get("type"):
        case "user" if _is_meta(entry):
            return [event(NAME, SYSTEM, entry)]
        case "user":
            results = [_result(block) for block in blocks if block.get("type") == "tool_result"]
            if results and not text:
                return [event(NAME, TOOL_RESULT, entry)]
            return [user_message(NAME, text, entry), *(aside(NAME, TOOL_RESULT, one) for one in results)]
        case "assistant":
            calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
            if text or not _UNSEEN.intersection(str(block.get("type")) for block in blocks):
                return [agent_response(NAME, text, entry), *(aside(NAME, TOOL_CALL, one) for one in calls)]
            return [event(NAME, TOOL_CALL if calls else REASONING, entry)]
        case "system":
            return [event(NAME, SYSTEM, entry)]
        case other:
            return [event(NAME, kind_for(other), entry)]


def _content_of(entry: Any) -> Any:
    return fields_in(fields_in(entry).get("message")).get("content")


def _is_meta(entry: Any) -> bool:
    """Whether an entry has the user's role, but is not what the user said."""
    fields = fields_in(entry)
    return fields.get("isMeta") is True or fields.get("isCompactSummary") is True


def _call(block: dict[str, Any]) -> dict[str, Any]:
    """A tool call, with the fields of a `ToolCall`."""
    return {
        "id": str(block.get("id") or ""),
        "name": str(block.get("name") or ""),
        "arguments": block.get("input", {}),
    }


def _result(block: dict[str, Any]) -> dict[str, Any]:
    """What a tool gave back, with the fields of a `ToolResult`."""
    content = block.get("content", "")
    output = shown(content) if isinstance(content, list) else json_of(content)
    return {"id": str(block.get("tool_use_id") or ""), "output": output}


def _turns_of(entry: Any) -> Sequence[Turn]:
    role, content = fields_in(entry).get("type"), _content_of(entry)
    if role not in ("user", "assistant") or _is_meta(entry):
        return ()
    if isinstance(content, str):
        return (Said(role, content),)
    return [turn for block in dicts_in(content) for turn in _turns_in(role, block)]


def _turns_in(role: Any, block: dict[str, Any]) -> Sequence[Turn]:
    match block.get("type"):
        case "tool_use":
            return (ToolCall.of(_call(block)),)
        case "tool_result":
            return (ToolResult(**_result(block)),)
        case kind:
            text = shown([block], unseen=_UNSEEN)
            return (Said(role, text),) if kind not in _UNSEEN else ()


def _entries_of(turns: Sequence[Turn]) -> list[Any]:
    """Turns as entries, each naming the one before it, as the CLI writes them. The same turns give the same uuids."""
    entries: list[Any] = []
    parent: str | None = None
    for message in messages_in(turns):
        role, content = _message_of(message)
        uuid = str(uuid5(NAMESPACE_OID, json_of([parent, role, content])))
        entries.append(
            {"type": role, "uuid": uuid, "parentUuid": parent, "message": {"role": role, "content": content}}
        )
        parent = uuid
    return entries


def _message_of(message: Message | ToolResult) -> tuple[str, Any]:
    if isinstance(message, ToolResult):
        return "user", [{"type": "tool_result", "tool_use_id": message.id, "content": message.output}]
    if message.role != "assistant":  # a transcript has no system messages of its own
        return "user", message.text
    said = [{"type": "text", "text": message.text}] if message.text or not message.calls else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments_by_name}
        for call in message.calls
    ]
    return "assistant", [*said, *calls]


DIALECT: Final = Dialect(_turns_of, _entries_of, records_of)
