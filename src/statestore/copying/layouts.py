"""Whether two layouts say the same, though one may tell more.

An engine that keeps layouts gives back the one that a session was created with; one that keeps files tells what the
file looks like now, with keys that were set since, and with notes. So where two are not equal, what is compared is
what never changes: the unknown members with their text, the keys that every session has, and the order of these.
"""

from __future__ import annotations

from typing import Final

from statestore.jsontext import members
from statestore.seedform.layout import CREATED, ID, UPDATED, USER_ID, is_known

_ALWAYS: Final = (ID, USER_ID, CREATED, UPDATED)
"""The keys that every session has, in their usual order."""


def are_alike(one: bytes | None, other: bytes | None) -> bool:
    """Whether two layouts say the same."""
    return one == other or essence(one) == essence(other)


def essence(layout: bytes | None) -> list[tuple[str, bytes]]:
    """What of a layout never changes."""
    shape = members(layout) if layout is not None else dict.fromkeys(_ALWAYS, b"null")
    return [(key, b"" if is_known(key) else text) for key, text in shape.items() if key in _ALWAYS or not is_known(key)]
