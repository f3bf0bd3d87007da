"""Looking at all sessions: many in one round trip, unless they are long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

from statestore.engines.inspecting import KEPT
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.inspecting import inspect_session, is_utf8
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import REPAIR, Finding, call_all, session_due, session_entries
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.scripts import CHECK
from statestore.stored import Problem

_PAGE: Final = 200
_PAGE_BYTES: Final = 4_000_000


async def survey_sessions(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    """All that is wrong with sessions, and whether they are listed."""
    seen: set[str] = set()
    in_parts: set[str] = set()
    page: list[str] = []
    async for key in caller.scan(keys.any_session):
        session_id, part = keys.session_in(key) or ("", "")
        if part in ("r", "k", "m"):
            in_parts.add(session_id)
        elif part == "h" and session_id not in seen:
            seen.add(session_id)
            page.append(session_id)
        if len(page) == _PAGE:
            async for finding in _survey_page(caller, keys, page):
                yield finding
            page = []
    async for finding in _survey_page(caller, keys, page):
        yield finding
    for session_id in sorted(in_parts - seen):
        header, *rest = keys.parts_of(keys.session(session_id))
        is_headless = not await caller.call("EXISTS", header)
        if is_headless and any([await caller.call("EXISTS", part) for part in rest]):  # it may expire right now
            what = "it has records, keys or metadata, and no header"
            yield Finding(Problem(f"session {session_id}", what, KEPT))


async def _survey_page(caller: Caller, keys: Keys, page: Sequence[str]) -> AsyncIterator[Finding]:
    """Look at some sessions, as many at once as fit into memory."""
    sizes = await caller.call_all([("HGET", f"{keys.session(it)}:h", "size") for it in page]) if page else []
    for ids in _groups(page, sizes):
        at_hand = not caller.address.is_cluster
        calls = [
            (keys.parts_of(base), (base, *((session_id, keys.prefix) if at_hand else ())))
            for base, session_id in zip(map(keys.session, ids), ids, strict=True)
        ]
        for session_id, reply in zip(ids, await caller.run_all(CHECK, calls), strict=True):
            error = caller.explained(reply)
            if error is not None:
                yield Finding(Problem(f"session {session_id}", f"it cannot be read: {error}", KEPT))
                continue
            async for finding in _survey_session(caller, keys, session_id, reply):
                yield finding


def _groups(page: Sequence[str], sizes: Sequence[Any]) -> Iterator[list[str]]:
    """Sessions that are not too large together; a session that is too large is alone."""
    group: list[str] = []
    total = 0
    for session_id, size in zip(page, sizes, strict=True):
        total += int(size) if isinstance(size, bytes) and size.isdigit() else 0
        if group and total > _PAGE_BYTES:
            yield group
            group, total = [], 0
        group.append(session_id)
    if group:
        yield group


async def _survey_session(caller: Caller, keys: Keys, session_id: str, reply: Any) -> AsyncIterator[Finding]:
    where = f"session {session_id}"
    pairs, records, metadata, seq_of_key = _lists_in(*reply[:3])
    header = {pairs[at].decode(errors="replace"): pairs[at + 1] for at in range(0, len(pairs), 2)}
    if not header:
        return  # it was deleted meanwhile
    for what in inspect_session(session_id, header, records, metadata, seq_of_key):
        yield Finding(Problem(where, what, KEPT))
    place, user_id = header.get("place"), header.get("user")
    if place is None or user_id is None or not is_utf8(place + user_id):
        return
    to_list = session_entries(keys, session_id, place, user_id)
    if caller.address.is_cluster:
        looks: list[Command] = [("ZSCORE", index, entry) for index, entry in to_list]
        is_listed = None not in await call_all(caller, looks)
        if not is_listed:  # if it was changed meanwhile, its writer lists it
            is_listed = await caller.call("HGET", f"{keys.session(session_id)}:h", "place") != place
    else:
        is_listed = b"0" not in reply[3].split()
    if not is_listed:
        problem = Problem(where, "it is missing in listings", REPAIR)
        yield Finding(problem, to_add=to_list, find_due=partial(session_due, caller, keys, session_id))


def _lists_in(counts: bytes, lengths: bytes, joined: bytes) -> list[list[bytes]]:
    """The lists that the script put into one text."""

    def texts() -> Iterator[bytes]:
        start = 0
        for length in map(int, lengths.split()):
            yield joined[start : start + length]
            start += length

    following = texts()
    return [list(islice(following, int(count))) for count in counts.split()]
