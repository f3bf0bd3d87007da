"""Written values that are stored already, and need only be named: messages that were said, a checkpoint's input."""

from __future__ import annotations

from typing import Any, Final, cast

from statestore.adapters.langgraph.notes import CheckpointNote, note_text
from statestore.adapters.langgraph.values import ESCAPED, MESSAGE

SAID: Final = "$said"
"""``{"$said": [7, -9]}``: the messages in these records; below 0, with the id that they were given later."""
INPUT: Final = "$input"
"""``{"$input": [null, "id"]}``: what the checkpoint's input has for the channel, with these ids of messages."""
START: Final = "__start__"
"""The channel that holds the input of a checkpoint."""


def said_in(value: Any) -> list[int]:
    """The numbers of the messages that a written value names."""
    return value[SAID] if value.__class__ is dict and SAID in value else []


def said_in_input(channel: str, value: Any) -> dict[str, list[int]]:
    """The numbers of the messages that a channel's value names, by channel, if it is a checkpoint's input."""
    is_input = channel == START and value.__class__ is dict and ESCAPED not in value
    items = cast("dict[str, Any]", value).items() if is_input else ()
    return {key: numbers for key, item in items if (numbers := said_in(item))}


def as_input(note: CheckpointNote, channel: str, encoded: Any) -> Any:
    """A list that a checkpoint's input holds for the channel, as a reference to it; anything else as it is."""
    given = _input(note, channel)
    if encoded.__class__ is not list or not encoded or given is None or len(given) != len(encoded):
        return encoded
    ids = [item[MESSAGE].get("id") if _is_message(item) else None for item in encoded]
    same = note_text(_with_ids(given, ids)) == note_text(_with_ids(encoded, ids))
    return {INPUT: ids} if same else encoded


def from_input(note: CheckpointNote, channel: str, ids: list[Any]) -> Any:
    """The encoded list behind a reference to a checkpoint's input."""
    return _with_ids(_input(note, channel) or [], ids)


def _input(note: CheckpointNote, channel: str) -> list[Any] | None:
    start: Any = note.values.get(START)
    given = cast("dict[str, Any]", start).get(channel) if isinstance(start, dict) else None
    return cast("list[Any]", given) if isinstance(given, list) else None


def _with_ids(items: list[Any], ids: list[Any]) -> list[Any]:
    """The items, each message among them with the id that it is given, or with none."""
    return [_with_id(item[MESSAGE], id) if _is_message(item) else item for item, id in zip(items, ids, strict=True)]


def _with_id(fields: dict[str, Any], id: Any) -> Any:
    others = {key: fields[key] for key in sorted(fields) if key != "id"}
    return {MESSAGE: others if id is None else {**others, "id": id}}


def _is_message(item: Any) -> bool:
    return item.__class__ is dict and MESSAGE in item
