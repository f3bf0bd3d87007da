"""Looking at the indexes of sessions: entries of sessions that are gone, or elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from statestore.engines.inspecting import KEPT
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.inspecting import is_utf8
from statestore.engines.valkey.keys import PLACE_DIGITS, Keys
from statestore.engines.valkey.mending import REPAIR, Finding, look_for, session_due
from statestore.stored import Problem

_PAGE: Final = 1_000


class _Look(NamedTuple):
    """An entry of an index, and what there is of the session that it names: its place and its user, or an error."""

    entry: bytes
    session_id: str
    reply: Any


async def survey_indexes(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    """Entries of sessions that are gone. Where sessions expire, such entries are nothing to speak of."""
    find = _find_expired if await caller.call("HEXISTS", keys.store, "expires") else _find_wrong
    async for index in _indexes(caller, keys):
        async for page in _pages(caller, keys, index):
            async for finding in find(caller, keys, index, page):
                yield finding


async def indexes_of_users(caller: Caller, keys: Keys) -> AsyncIterator[str]:
    """The index of each user, some perhaps twice."""
    async for key in caller.scan(keys.any_newest_of):
        if keys.is_newest_of(key):
            yield key


async def _indexes(caller: Caller, keys: Keys) -> AsyncIterator[str]:
    yield keys.ids
    yield keys.newest
    async for key in indexes_of_users(caller, keys):
        yield key


async def _pages(caller: Caller, keys: Keys, index: str) -> AsyncIterator[list[_Look]]:
    start = b"-"
    while await caller.call("TYPE", index) == b"zset":
        entries: list[bytes] = await caller.call("ZRANGEBYLEX", index, start, "+", "LIMIT", 0, _PAGE)
        ids = [(entry if index == keys.ids else entry[PLACE_DIGITS:]).decode(errors="replace") for entry in entries]
        replies = await caller.call_with_refusals([look_for(keys, it) for it in ids])
        yield [_Look(*found) for found in zip(entries, ids, replies, strict=True)]
        if len(entries) < _PAGE:
            return
        start = b"(" + entries[-1]


async def _find_wrong(caller: Caller, keys: Keys, index: str, page: Sequence[_Look]) -> AsyncIterator[Finding]:
    for entry, session_id, reply in page:
        where = f"session {session_id}"
        error = caller.explained(reply)
        if error is not None:
            yield Finding(Problem(where, f"it cannot be read: {error}", KEPT))
        elif not _is_true(keys, index, entry, *reply) and await _is_still_wrong(caller, keys, index, entry, session_id):
            problem = Problem(where, "a listing has it where it is not", REPAIR)
            find_due = partial(session_due, caller, keys, session_id)
            yield Finding(problem, to_remove=[(index, entry)], find_due=find_due)


async def _is_still_wrong(caller: Caller, keys: Keys, index: str, entry: bytes, session_id: str) -> bool:
    """Whether an entry is there and not true at one look: the session may have gone, and come back, since the first."""
    reply, score = await caller.call_with_refusals([look_for(keys, session_id), ("ZSCORE", index, entry)])
    return score is not None and caller.explained(reply) is None and not _is_true(keys, index, entry, *reply)


async def _find_expired(caller: Caller, keys: Keys, index: str, page: Sequence[_Look]) -> AsyncIterator[Finding]:
    wrong = [
        look
        for look in page
        if not isinstance(look.reply, Exception) and not _is_true(keys, index, look.entry, *look.reply)
    ]
    if wrong:
        find_due = partial(session_due, caller, keys, *(look.session_id for look in wrong))
        yield Finding(None, to_remove=[(index, look.entry) for look in wrong], find_due=find_due)


def _is_true(keys: Keys, index: str, entry: bytes, place: bytes | None, user_id: bytes | None) -> bool:
    """Whether a session is where an entry of an index says; a header that is damaged is told of the session."""
    if not is_utf8((place or b"") + (user_id or b"")):
        return True
    if place is None or index == keys.ids:
        return place is not None
    belongs = index == keys.newest or user_id is None or index == keys.newest_of(user_id.decode())
    return belongs and entry.startswith(place)
