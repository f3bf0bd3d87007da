"""The order of a session's top-level keys, and what is out of the ordinary in it.

A layout is kept only where a session differs from what the seed would write: it is a JSON object with the keys
in their order, ``null`` for those that we know, and the unknown ones with their own text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from statestore.jsontext import compact, joined_members, members
from statestore.stored import OPTIONAL_FIELDS

ID: Final = "id"
USER_ID: Final = "user_id"
USERS: Final = "user_messages"
AGENTS: Final = "agent_responses"
CREATED: Final = "created_at"
UPDATED: Final = "updated_at"
METADATA: Final = "metadata"
ORDER: Final = (ID, USER_ID, USERS, AGENTS, *OPTIONAL_FIELDS, CREATED, UPDATED, METADATA)
_RANK: Final = {key: rank for rank, key in enumerate(ORDER)}


def layout_of(values: Mapping[str, bytes | None]) -> bytes | None:
    """The layout of a session with these keys; ``None`` if it is what the seed would write.

    Unknown keys come with their text, known ones with ``None``, or with their text where that is out of the ordinary.
    """
    keys = tuple(values)
    expected = tuple(key for key in ORDER if key in values or key not in OPTIONAL_FIELDS)
    if keys == expected and not any(values.values()):
        return None
    return joined_members({key: b"null" if text is None else compact(text) for key, text in values.items()})


def ordered(values: Mapping[str, bytes], layout: bytes | None) -> dict[str, bytes]:
    """The members of a session in the order of its layout, the unknown ones put in.

    ``values`` are the known members; one that the layout lacks takes its usual place.
    """
    if layout is None:
        return {key: values[key] for key in ORDER if key in values}
    shape = members(layout)
    keys = list(shape)
    for key in ORDER:
        if key in values and key not in shape:
            keys.insert(place_for(key, keys), key)
    return {key: _known(values.get(key), shape.get(key, b"null")) if key in _RANK else shape[key] for key in keys}


def _known(now: bytes | None, before: bytes) -> bytes:
    """The text of a member that we know: as it was written before, if that says the same."""
    if now is None:
        return b"null"
    is_same = before != b"null" and msgspec.json.decode(before) == msgspec.json.decode(now)
    return before if is_same else now


def place_for(key: str, keys: Iterable[str]) -> int:
    """Where among these keys a new known one belongs: before the first known one that usually follows it."""
    keys = list(keys)
    for place, other in enumerate(keys):
        if _RANK.get(other, -1) > _RANK[key]:
            return place
    return len(keys)


def is_known(key: str) -> bool:
    """Whether a top-level key is one that this program understands."""
    return key in _RANK
