"""Looking at all sessions: many in one round trip, and long ones in parts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from statestore.engines.inspecting import KEPT
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.inspecting import inspect_session, is_utf8
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import REPAIR, Entry, Finding, session_due, session_entries
from statestore.engines.valkey.reading import PAGE, PAGE_BYTES
from statestore.engines.valkey.scripts import CHECK, CHECK_RECORDS, texts_in
from statestore.stored import Problem

_SESSIONS: Final = 200
_GROUP_BYTES: Final = 4_000_000
"""How many are looked at at once, and about how many bytes."""


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
        if len(page) == _SESSIONS:
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
    sizes = await caller.call_with_refusals([("HGET", f"{keys.session(it)}:h", "size") for it in page])
    for ids in _groups(page, sizes):
        for session_id, reply in zip(ids, await _look(caller, keys, ids), strict=True):
            error = caller.explained(reply)
            if error is not None:
                yield Finding(Problem(f"session {session_id}", f"it cannot be read: {error}", KEPT))
                continue
            async for finding in _survey_session(caller, keys, session_id, reply):
                yield finding


def _groups(page: Sequence[str], sizes: Sequence[Any]) -> Iterator[Sequence[str]]:
    """Sessions that are not too large together; a session that is too large is alone."""
    start = total = 0
    for place, reply in enumerate(sizes):
        size = int(reply) if isinstance(reply, bytes) and reply.isdigit() else 0
        if place > start and total + size > _GROUP_BYTES:
            yield page[start:place]
            start, total = place, 0
        total += size
    if page:
        yield page[start:]


async def _look(caller: Caller, keys: Keys, ids: Sequence[str]) -> list[Any]:
    """What there is of some sessions, but of each only the first records; an error where that cannot be read."""
    calls: list[tuple[tuple[str, ...], tuple[str | int, ...]]] = []
    for session_id in ids:
        base = keys.session(session_id)
        indexes = () if caller.address.is_cluster else (session_id, keys.prefix)
        calls.append((keys.parts_of(base), (base, PAGE, PAGE_BYTES, *indexes)))
    return await caller.run_with_refusals(CHECK, calls)


class _Session(NamedTuple):
    """A session at one moment."""

    header: dict[str, bytes]
    records: list[bytes]
    """As many as were read yet."""
    length: int
    """How many there are."""
    metadata: list[bytes]
    seq_of_key: list[bytes]
    listed: bytes
    """Whether each index has it, if they are at hand."""


def _session_in(reply: Any) -> _Session:
    """What the script tells of a session."""
    counts, lengths, joined, length, listed = reply
    texts = texts_in(lengths, joined)
    pairs, records, metadata, seq_of_key = (list(islice(texts, int(number))) for number in counts.split())
    header = {pairs[at].decode(errors="replace"): pairs[at + 1] for at in range(0, len(pairs), 2)}
    return _Session(header, records, length, metadata, seq_of_key, listed)


async def _read_on(caller: Caller, keys: Keys, session_id: str, session: _Session) -> bool:
    """Read the other records of a session, in parts like the first one; whether they were still there."""
    base, era = keys.session(session_id), session.header.get("era", b"")
    page = max(1, len(session.records))
    for first in range(len(session.records), session.length, page):
        last = min(first + page, session.length) - 1
        reply = await caller.run(CHECK_RECORDS, keys.parts_of(base), base, era, first, last)
        if reply is None:
            return False
        session.records.extend(texts_in(*reply))
    return True


async def _survey_session(caller: Caller, keys: Keys, session_id: str, reply: Any) -> AsyncIterator[Finding]:
    where = f"session {session_id}"
    session = _session_in(reply)
    while not await _read_on(caller, keys, session_id, session):  # it was rewound or deleted meanwhile
        (again,) = await _look(caller, keys, [session_id])
        session = _session_in(caller.granted(again))
    header = session.header
    if not header:
        return  # it was deleted meanwhile
    for what in inspect_session(session_id, header, session.records, session.metadata, session.seq_of_key):
        yield Finding(Problem(where, what, KEPT))
    place, user_id = header.get("place"), header.get("user")
    if place is None or user_id is None or not is_utf8(place + user_id):
        return
    to_list = session_entries(keys, session_id, place, user_id)
    if caller.address.is_cluster:
        is_listed = await _is_listed_in_cluster(caller, keys, session_id, place, to_list)
    else:
        is_listed = b"0" not in session.listed.split()
    if not is_listed:
        problem = Problem(where, "it is missing in listings", REPAIR)
        yield Finding(problem, to_add=to_list, find_due=partial(session_due, caller, keys, session_id))


async def _is_listed_in_cluster(
    caller: Caller, keys: Keys, session_id: str, place: bytes, to_list: Sequence[Entry]
) -> bool:
    """Whether all indexes have a session. If it was changed meanwhile, its writer lists it.

    An index that is none of ours is not this session's fault.
    """
    looks = await caller.call_with_refusals([("ZSCORE", index, entry) for index, entry in to_list])
    return None not in looks or await caller.call("HGET", f"{keys.session(session_id)}:h", "place") != place
