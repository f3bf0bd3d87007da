"""Sessions that may be a user's, and that no listing shows: the header is damaged, or lost, or no index has it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Any, Final

from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.inspecting import is_utf8
from statestore.engines.valkey.keys import Keys

_PAGE: Final = 1000
"""How many headers are asked for at once."""


async def sessions_that_may_be_of(caller: Caller, keys: Keys, user_id: str) -> list[str]:
    """The ids of all sessions of which there is anything, but for those whose header says that they are another's."""
    ids: dict[str, None] = {}
    async for key in caller.scan(keys.any_session):
        found = keys.session_in(key)
        if found is not None:
            ids[found[0]] = None
    return sorted([it async for it in _not_of_others(caller, keys, user_id, list(ids))])


async def _not_of_others(caller: Caller, keys: Keys, user_id: str, ids: Sequence[str]) -> AsyncIterator[str]:
    for start in range(0, len(ids), _PAGE):
        page = ids[start : start + _PAGE]
        owners = await caller.call_with_refusals([("HGET", f"{keys.session(it)}:h", "user") for it in page])
        suspects = [it for it, owner in zip(page, owners, strict=True) if not _is_anothers(owner, user_id)]
        remains = await caller.call_all([("EXISTS", *keys.parts_of(keys.session(it))) for it in suspects])
        for session_id, count in zip(suspects, remains, strict=True):
            if count:  # else it was deleted, or it expired, since it was met
                yield session_id


def _is_anothers(owner: Any, user_id: str) -> bool:
    """Whether a header tells that a session certainly is another user's."""
    return isinstance(owner, bytes) and is_utf8(owner) and owner != user_id.encode()


def strays_among(keys: Keys, suspects: Sequence[str], listed: Collection[str]) -> list[str]:
    """Where those lie that no listing shows. The others were stored while we looked."""
    return [f"session {it} (the keys {keys.session(it)}:*)" for it in suspects if it not in listed]
