"""Which of the messages that an agent hands over are new: some agents hand over the conversation so far with them.

This is the rule of the framework's own history providers. They compare with the whole history; for what it decides the
end of the history is enough, so that adding costs the same however long the conversation is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def what_is_new(known: Sequence[Any], incoming: Sequence[Any]) -> Sequence[Any]:
    """The messages after those that the history holds already.

    ``known`` is the end of the history: as many messages as are incoming, or all of it if it is shorter.
    """
    if not known:
        return incoming
    before, after = [_identity(item) for item in known], [_identity(item) for item in incoming]
    is_bare_question = known[-1].get("role") == "user" and before[-1][0] != "id"
    for start in range(len(after) - len(before) + 1):  # the whole history, somewhere in what is handed over
        if after[start : start + len(before)] == before:
            if start == 0 and len(before) == 1 and is_bare_question:
                break  # the same question again is worth more than a replay that was missed
            return incoming[start + len(before) :]
    for overlap in range(min(len(before), len(after)), 0, -1):
        if before[-overlap:] == after[:overlap] and not (overlap == 1 and is_bare_question):
            return incoming[overlap:]
    return incoming


def _identity(item: Any) -> tuple[str, ...]:
    """What makes two messages the same: their id, or else who says what."""
    named = item.get("message_id")
    if named is not None:
        return ("id", str(named))
    return ("content", str(item.get("role")), json.dumps(item.get("contents") or [], sort_keys=True))
