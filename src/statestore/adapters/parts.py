"""What frameworks have in common in their messages: contents that are made of parts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

_TEXTS: Final = ("text", "refusal")


def shown(content: Any, *, type_field: str = "type", unseen: Collection[str] = ()) -> str:
    """What there is to read in a content: the text itself, or the texts of its parts, each on lines of its own.

    A part that is no text is named (``[image]``), unless its type is among the ``unseen``.
    """
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    told = (_part_shown(part, type_field, unseen) for part in parts)
    return "\n".join(text for text in told if text is not None)


def _part_shown(part: Any, type_field: str, unseen: Collection[str]) -> str | None:
    if isinstance(part, str):
        return part
    fields = fields_in(part)
    named = str(fields.get(type_field, "part"))
    if named in unseen:
        return None
    for name in _TEXTS:
        if isinstance(fields.get(name), str):
            return fields[name]
    return f"[{named.removeprefix('input_')}]"


def fields_in(value: Any) -> dict[str, Any]:
    """The fields of a JSON object; none, if it is no object."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def dicts_in(value: Any) -> list[dict[str, Any]]:
    """The objects in a JSON array; none, if it is no array."""
    values = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in values if isinstance(one, dict)]
