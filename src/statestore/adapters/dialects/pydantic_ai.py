"""The messages of Pydantic AI, as records and as turns. They are plain JSON here; the framework is not needed.

A message is what its ``ModelMessagesTypeAdapter`` gives: a ``request`` (what the user, the system and tools say to the
model) or a ``response``, each made of parts that name their kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import msgspec

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
from statestore.adapters.parts import dicts_in, fields_in
from statestore.adapters.turns import Dialect, Message, Said, ToolCall, ToolResult, Turn, json_of, messages_in
from statestore.records import Record

NAME: Final = "pydantic-ai"
_SAID: Final = ("user-prompt", "text", "speech", "file")
_KINDS: Final = {
    "tool-call": TOOL_CALL,
    "builtin-tool-call": TOOL_CALL,
    "tool-return": TOOL_RESULT,
    "builtin-tool-return": TOOL_RESULT,
    "retry-prompt": TOOL_RESULT,
    "thinking": REASONING,
    "system-prompt": SYSTEM,
    "instruction": SYSTEM,
    "instruction-delta": SYSTEM,
    "retry-feedback": SYSTEM,
}
"""What a part that nobody said is called; of those in one message, the first here names it."""
_RANKS: Final = (TOOL_CALL, TOOL_RESULT, REASONING, SYSTEM)


def records_of(item: Any, **notes: Any) -> list[Record]:
    """The records for a message: what was said, or what happened; what came with a text follows it as asides."""
    fields = fields_in(item)
    parts = dicts_in(fields.get("parts"))
    kinds = [_kind_of(part) for part in parts]
    is_response = fields.get("kind") == "response"
    said = [_shown(part) for part, kind in zip(parts, kinds, strict=True) if kind is None]
    if any(said):
        record = agent_response if is_response else user_message
        told = zip(kinds, parts, strict=True)
        asides = [aside(NAME, kind, part) for kind, part in told if kind is not None and kind != REASONING]
        return [record(NAME, "\n".join(filter(None, said)), item, **notes), *asides]
    others = [kind for kind in kinds if kind is not None]
    kind = next((kind for kind in (*_RANKS, *others) if kind in others), None)
    return [event(NAME, kind or kind_for(fields.get("kind")), item, **notes)]


def _kind_of(part: dict[str, Any]) -> str | None:
    """What a part that nobody said is called; ``None`` for what the user or the model said."""
    named = part.get("part_kind")
    if named in _SAID:
        return None
    return _KINDS[named] if isinstance(named, str) and named in _KINDS else kind_for(named)


def _shown(part: dict[str, Any]) -> str:
    content = part.get("content", part.get("transcript"))
    if isinstance(content, list):
        return "\n".join(filter(None, map(_content_shown, cast("list[Any]", content))))
    return _content_shown(content)


def _content_shown(content: Any) -> str:
    """A text, or the name of what is none."""
    if isinstance(content, str):
        return content
    fields = fields_in(content)
    if isinstance(fields.get("content"), str):
        return fields["content"]
    named = fields.get("media_type") or fields.get("kind")
    return f"[{named}]" if isinstance(named, str) else ""


def _turns_of(item: Any) -> Sequence[Turn]:
    fields = fields_in(item)
    role = "assistant" if fields.get("kind") == "response" else "user"
    turns: list[Turn] = []
    for part in dicts_in(fields.get("parts")):
        called = _text(part.get("tool_call_id"))
        match part.get("part_kind"):
            case "tool-call" | "builtin-tool-call":
                turns.append(ToolCall(called, _text(part.get("tool_name")), json_of(part.get("args") or "{}")))
            case "tool-return" | "builtin-tool-return":
                turns.append(ToolResult(called, json_of(part.get("content")), _text(part.get("tool_name")) or None))
            case "retry-prompt" if part.get("tool_name"):
                turns.append(ToolResult(called, json_of(part.get("content")), _text(part.get("tool_name"))))
            case "system-prompt":
                turns.append(Said("system", _shown(part)))
            case named if named in _SAID and (text := _shown(part)):
                turns.append(Said(role, text))
            case _:
                continue
    return turns


def _items_of(turns: Iterable[Turn]) -> list[Any]:
    """Turns as messages; Pydantic AI gives them their times when it loads them."""
    names: dict[str, str] = {}
    items: list[dict[str, Any]] = []
    for message in messages_in(turns):
        if isinstance(message, ToolResult):
            name = message.name or names.get(message.id, "tool")
            part = {
                "tool_name": name,
                "content": message.output,
                "tool_call_id": message.id,
                "part_kind": "tool-return",
            }
            _add_to_request(items, part)
        elif message.role == "assistant":
            names |= {call.id: call.name for call in message.calls}
            items.append(_response(message))
        else:
            kind = "user-prompt" if message.role == "user" else "system-prompt"
            _add_to_request(items, {"content": message.text, "part_kind": kind})
    return items


def _add_to_request(items: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Add a part to the request that follows the last response: there is one between two responses."""
    if items and items[-1]["kind"] == "request":
        items[-1]["parts"].append(part)
    else:
        items.append({"parts": [part], "kind": "request"})


def _response(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"content": message.text, "part_kind": "text"}] if message.text else []
    for call in message.calls:
        parts.append(
            {"tool_name": call.name, "args": call.arguments, "tool_call_id": call.id, "part_kind": "tool-call"}
        )
    return {"parts": parts, "kind": "response"}


def _loaded(items: list[Any]) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter  # noqa: PLC0415 - the framework is needed only here

    return ModelMessagesTypeAdapter.validate_json(msgspec.json.encode(items))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
