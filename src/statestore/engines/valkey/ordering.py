"""The sessions of one user by id: the index of a user has them by the moment of their last change."""

from __future__ import annotations

from typing import Final, NamedTuple

from statestore.engine import SessionQuery
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import PLACE_DIGITS, Keys

_PAGE: Final = 5_000
_ENTRIES_PER_HEADER: Final = 10
"""How many entries of an index can be read, roughly, in the time that a header of a session takes."""


class Owned(NamedTuple):
    """What a user's index has."""

    key: str
    entries: list[bytes]


async def owned_by_id(caller: Caller, keys: Keys, query: SessionQuery) -> Owned | None:
    """What a user's index has, by id, from where a query begins.

    ``None`` if the query is for something else, or if the index of all ids answers it sooner: who has most of the
    sessions is met often enough there, and has too many to put them into order for every page.
    """
    if query.order != "id" or query.user_id is None:
        return None
    index = keys.newest_of(query.user_id)
    own, total = await caller.call_all([("ZCARD", index), ("ZCARD", keys.ids)])
    if query.limit is not None and own * own > _ENTRIES_PER_HEADER * query.limit * total:
        return None
    after = b"" if query.after is None else query.after.id.encode()
    entry_of: dict[bytes, bytes] = {}
    start = b"+"
    while True:  # from the oldest to the newest: a session that is changed meanwhile moves to where we come to later
        entries: list[bytes] = await caller.call("ZREVRANGEBYLEX", index, start, "-", "LIMIT", 0, _PAGE)
        entry_of |= {entry[PLACE_DIGITS:]: entry for entry in entries if entry[PLACE_DIGITS:] > after}
        if len(entries) < _PAGE:
            return Owned(index, [entry_of[session_id] for session_id in sorted(entry_of)])
        start = b"(" + entries[-1]
