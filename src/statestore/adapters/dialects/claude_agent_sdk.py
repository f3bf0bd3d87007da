"""The transcript entries of the Claude Agent SDK, as records and as turns. They are plain JSON; no SDK is needed here.

An entry is one line of a transcript: a ``type``, mostly a ``uuid``, and for what was said a ``message`` as the Messages
API has it, whose content is a text or a list of blocks.

The CLI cuts texts where it likes, so an entry may hold half of a character. That is no Unicode, and no store can keep
it: such an entry is stored as a text of JSON, which is ASCII: ``{"statestore_json": "{…}"}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
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
from statestore.adapters.turns import (
    Dialect,
    Message,
    Said,
    ToolCall,
    ToolResult,
    Turn,
    call_shown,
    json_of,
    messages_in,
    result_shown,
)
from statestore.errors import InvalidValue
from statestore.records import Record

NAME: Final = "claude-agent-sdk"
_UNSEEN: Final = frozenset(("tool_use", "tool_result", "thinking", "redacted_thinking"))
_TEXT: Final = "statestore_json"


def records_of(entry: Any) -> list[Record]:
    """The records for an entry: itself, and the tool calls and results in it where it has a text too."""
    if _TEXT not in fields_in(entry):
        with suppress(InvalidValue, UnicodeEncodeError):
            return _records_of(entry, entry)
    return _records_of(legible(entry), {_TEXT: _json_text(entry)})


def entry_in(item: Any) -> Any:
    """The entry that an item is."""
    text = fields_in(item).get(_TEXT)
    return json.loads(text) if isinstance(text, str) else item


def legible(value: Any) -> Any:
    """A value as any store can keep it: ``?`` for half of a character, digits for a number beyond 64 bits."""
    try:
        text = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        return json.loads(text, parse_int=_number)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(f"the entry is not JSON: {error}") from error


def _number(digits: str) -> int | str:
    number = int(digits)
    return number if -(2**63) <= number < 2**64 else digits


def _json_text(entry: Any) -> str:
    try:
        text = json.dumps(entry, allow_nan=False)
    except ValueError as error:
        raise InvalidValue(f"the entry is not JSON: {error}") from error
    if json.loads(text) != entry:
        raise InvalidValue("the entry is not JSON: it would not come back equal")
    return text


def _records_of(entry: Any, item: Any) -> list[Record]:
    content = _content_of(entry)
    text = shown(content, unseen=_UNSEEN)
    blocks = dicts_in(content)
    match fields_in(entry).get("type"):
        case "user" if _is_meta(entry):
            return [event(NAME, SYSTEM, item)]
        case "user":
            results = [_result(block) for block in blocks if block.get("type") == "tool_result"]
            if results and not text:
                return [event(NAME, TOOL_RESULT, item)]
            return [user_message(NAME, text, item), *(aside(NAME, TOOL_RESULT, one) for one in results)]
        case "assistant":
            calls = [_call(block) for block in blocks if block.get("type") == "tool_use"]
            if text or not _UNSEEN.intersection(str(block.get("type")) for block in blocks):
                return [agent_response(NAME, text, item), *(aside(NAME, TOOL_CALL, one) for one in calls)]
            return [event(NAME, TOOL_CALL if calls else REASONING, item)]
        case "system":
            return [event(NAME, SYSTEM, item)]
        case other:
            return [event(NAME, kind_for(other), item)]


def _content_of(entry: Any) -> Any:
    return fields_in(fields_in(entry).get("message")).get("content")


def _is_meta(entry: Any) -> bool:
    """Whether an entry has the user's role, but is not what the user said."""
    fields = fields_in(entry)
    return fields.get("isMeta") is True or fields.get("isCompactSummary") is True


def _call(block: dict[str, Any]) -> dict[str, Any]:
    return call_shown(block.get("id"), block.get("name"), block.get("input", {}))


def _result(block: dict[str, Any]) -> dict[str, Any]:
    content = block.get("content", "")
    output = shown(content) if isinstance(content, list) else json_of(content)
    return result_shown(block.get("tool_use_id"), output)


def _turns_of(item: Any) -> Sequence[Turn]:
    entry = legible(entry_in(item)) if _TEXT in fields_in(item) else item
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


def _loaded(items: list[Any]) -> list[Any]:
    return list(map(entry_in, items))


DIALECT: Final = Dialect(_turns_of, _entries_of, records_of, _loaded)
