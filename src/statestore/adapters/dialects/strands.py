"""The messages of Strands Agents, as records and as turns, in the form that ``SessionMessage.to_dict`` gives them.

A message has a role and a list of content blocks; what a block is, its only key tells: ``{"text": …}``,
``{"toolUse": …}``, ``{"toolResult": …}``, ``{"reasoningContent": …}``.
"""

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
from statestore.adapters.parts import dicts_in, fields_in
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
from statestore.records import Record

NAME: Final = "strands"
AGENT_FIELD: Final = "strands_agent"
"""The field beside a record that tells which agent's message it is; there is none where nobody said."""
_UNSEEN: Final = frozenset(("toolUse", "toolResult", "reasoningContent", "cachePoint"))


def records_of(item: Any, agent_id: str | None = None) -> list[Record]:
    """The records for a message: itself, and the tool calls and results in it where it has a text too."""
    notes: dict[str, Any] = {} if agent_id is None else {AGENT_FIELD: agent_id}
    message = _message_in(item)
    blocks = dicts_in(message.get("content"))
    text = _text_of(blocks)
    calls = [_call(block["toolUse"]) for block in blocks if isinstance(block.get("toolUse"), dict)]
    results = [_result(block["toolResult"]) for block in blocks if isinstance(block.get("toolResult"), dict)]
    more = [
        *(aside(NAME, TOOL_CALL, call, **notes) for call in calls),
        *(aside(NAME, TOOL_RESULT, result, **notes) for result in results),
    ]
    match message.get("role"):
        case "user" if text or not results:
            return [user_message(NAME, text, item, **notes), *more]
        case "assistant" if text or not (calls or _thinks(blocks)):
            return [agent_response(NAME, text, item, **notes), *more]
        case "user" | "assistant":
            kind = TOOL_CALL if calls else TOOL_RESULT if results else REASONING
            return [event(NAME, kind, item, **notes)]
        case "system":
            return [event(NAME, SYSTEM, item, **notes)]
        case other:
            return [event(NAME, kind_for(other), item, **notes)]


def _message_in(item: Any) -> dict[str, Any]:
    """The message that counts: what it was redacted to, if it was."""
    stored = fields_in(item)
    return fields_in(stored.get("redact_message") or stored.get("message"))


def _text_of(blocks: Sequence[dict[str, Any]]) -> str:
    """What there is to read: texts, each on lines of its own; what is no text is named (``[image]``)."""
    told = (_shown(block) for block in blocks)
    return "\n".join(text for text in told if text is not None)


def _shown(block: dict[str, Any]) -> str | None:
    text = block.get("text")
    if isinstance(text, str):
        return text
    named = next(iter(block), "part")
    return None if named in _UNSEEN else f"[{named}]"


def _thinks(blocks: Sequence[dict[str, Any]]) -> bool:
    return any("reasoningContent" in block for block in blocks)


def _call(use: dict[str, Any]) -> dict[str, Any]:
    return call_shown(use.get("toolUseId"), use.get("name"), use.get("input", {}))


def _result(result: dict[str, Any]) -> dict[str, Any]:
    blocks = dicts_in(result.get("content"))
    parts = [json_of(block["json"]) if "json" in block else _shown(block) for block in blocks]
    output = "\n".join(part for part in parts if part is not None)
    return result_shown(result.get("toolUseId"), output)


def _turns_of(item: Any) -> Sequence[Turn]:
    message = _message_in(item)
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        return ()
    turns: list[Turn] = []
    for block in dicts_in(message.get("content")):
        if isinstance(block.get("toolUse"), dict):
            turns.append(ToolCall.of(_call(block["toolUse"])))
        elif isinstance(block.get("toolResult"), dict):
            turns.append(ToolResult(**_result(block["toolResult"])))
        elif (text := _shown(block)) is not None:
            turns.append(Said(role, text))
    return turns


def _items_of(turns: Sequence[Turn]) -> list[Any]:
    """Turns as messages. Results that follow each other are one message, as models want them."""
    messages: list[dict[str, Any]] = []
    was_result = False
    for message in messages_in(turns):
        is_result = isinstance(message, ToolResult)
        role, content = _message_of(message)
        if is_result and was_result:
            messages[-1]["content"] += content
        else:
            messages.append({"role": role, "content": content})
        was_result = is_result
    return [{"message": message, "message_id": number} for number, message in enumerate(messages)]


def _message_of(message: Message | ToolResult) -> tuple[str, list[Any]]:
    if isinstance(message, ToolResult):
        result = {"toolUseId": message.id, "status": "success", "content": [{"text": message.output}]}
        return "user", [{"toolResult": result}]
    said = [{"text": message.text}] if message.text or not message.calls else []
    calls = [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments_by_name}}
        for call in message.calls
    ]
    return "assistant" if message.role == "assistant" else "user", [*said, *calls]


def _loaded(items: list[Any]) -> list[Any]:
    from statestore.adapters.strands.repository import message_from  # noqa: PLC0415 - the framework is loaded when used

    return [message_from(item).to_message() for item in items]


DIALECT: Final = Dialect(_turns_of, _items_of, records_of, _loaded)
