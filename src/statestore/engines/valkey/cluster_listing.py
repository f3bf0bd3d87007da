"""Listing and counting sessions of a cluster, whose indexes are written after the sessions.

So an entry is only taken for what it says if the session's header agrees; one that is left over is put right when it is
met. A session whose writer died before it was listed is found by check() and listed by its repair.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from statestore.engine import SessionQuery
from statestore.engines.selecting import is_selected
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import PLACE_DIGITS, Keys, place_in_listing
from statestore.engines.valkey.listing import DAMAGED, bounds_of, index_of, is_told_by_index, leave_out, summary_of
from statestore.engines.valkey.listing import list_categories as listed_categories
from statestore.engines.valkey.mending import look_for, put_right, seen_in
from statestore.engines.valkey.ordering import owned_by_id
from statestore.engines.valkey.planning import Listed, entries_to_add
from statestore.engines.valkey.pool import Command
from statestore.errors import CorruptData
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

PAGE: Final = 200
FIELDS: Final = (
    *("id", "user", "users", "created", "updated", "agents", "events", "active_seed_id", "active_persona_id"),
    *("project_id", "project", "projects", "parent_session_id", "title", "opening", "size", "version", "place"),
)
"""Of a header, in the order that `summary_of` takes them."""
_ID, _USER, _VERSION, _PLACE = (FIELDS.index(name) for name in ("id", "user", "version", "place"))


async def list_sessions(caller: Caller, keys: Keys, query: SessionQuery, *, may_clean: bool) -> list[SessionSummary]:
    """The sessions that a query selects."""
    found: list[SessionSummary] = []
    if query.limit is not None and query.limit <= 0:
        return found
    async for summary in _walk(caller, keys, query, may_clean=may_clean):
        found.append(summary)
        if len(found) == query.limit:
            break
    if query.order == "updated":  # some may have moved to the front while we looked
        found.sort(key=lambda summary: (_place_in(summary), summary.id))
    return found


def _place_in(summary: SessionSummary) -> str:
    return place_in_listing(nanoseconds(summary.updated_text))


async def count_sessions(caller: Caller, keys: Keys, query: SessionQuery, *, may_clean: bool) -> int:
    """How many sessions a query selects, ``limit`` and ``after`` aside."""
    query = msgspec.structs.replace(query, after=None, limit=None)
    count = 0
    async for _ in _walk(caller, keys, query, may_clean=may_clean):
        count += 1
    return count


async def _walk(caller: Caller, keys: Keys, query: SessionQuery, *, may_clean: bool) -> AsyncIterator[SessionSummary]:
    """The sessions that a query selects, each once, also if it moves meanwhile."""
    owned = await owned_by_id(caller, keys, query)
    index = index_of(keys, query) if owned is None else owned.key
    page = min(PAGE, query.limit) if query.limit is not None and is_told_by_index(keys, index, query) else PAGE
    beginning, _ = bounds_of(query)
    seen: set[str] = set()
    async for entries in _pages(caller, index, query, page) if owned is None else _parts(owned.entries, page):
        headers = await _headers(caller, keys, index, entries)
        if may_clean:
            gone = [entry for entry, it in zip(entries, headers, strict=True) if it is not None and it[_PLACE] is None]
            await _forget(caller, keys, index, gone)
        for entry, header in zip(entries, headers, strict=True):
            if header is None:
                continue
            session_id = _id_in(keys, index, entry)
            if not _is_true(entry, header, query):
                if may_clean and header[_PLACE] is not None:
                    await _correct(caller, keys, index, entry, header)
                if header[_VERSION] is None or (query.after and f"({header[_PLACE]}{session_id}".encode() <= beginning):
                    continue
            summary = None if session_id in seen else summary_of(header)
            seen.add(session_id)
            if summary is not None and is_selected(summary, query):
                yield summary


async def _pages(caller: Caller, index: str, query: SessionQuery, page: int) -> AsyncIterator[list[bytes]]:
    """The entries of an index between the bounds of a query, some at a time."""
    start, end = bounds_of(query)
    while True:
        entries: list[bytes] = await caller.call("ZRANGEBYLEX", index, start, end, "LIMIT", 0, page)
        yield entries
        if len(entries) < page:
            return
        start = b"(" + entries[-1]
        page = PAGE  # some were in vain


async def _parts(entries: list[bytes], page: int) -> AsyncIterator[list[bytes]]:
    """Entries that are known already, some at a time."""
    for start in range(0, len(entries), page):
        yield entries[start : start + page]


def _id_in(keys: Keys, index: str, entry: bytes) -> str:
    return (entry if index == keys.ids else entry[PLACE_DIGITS:]).decode(errors="replace")


def _is_true(entry: bytes, header: list[Any], query: SessionQuery) -> bool:
    """Whether there is a session, in the place that its entry tells if the place matters."""
    return header[_VERSION] is not None and (query.order == "id" or header[_PLACE] == entry[:PLACE_DIGITS].decode())


async def _headers(caller: Caller, keys: Keys, index: str, entries: list[bytes]) -> list[list[str | None] | None]:
    """The fields of some headers, without values if there is none; ``None``, and a warning, for a damaged one."""
    ids = [_id_in(keys, index, entry) for entry in entries]
    commands = [("HMGET", f"{keys.session(session_id)}:h", *FIELDS) for session_id in ids]
    replies = await caller.call_with_refusals(commands)
    return [_header_in(caller, session_id, reply) for session_id, reply in zip(ids, replies, strict=True)]


def _header_in(caller: Caller, session_id: str, reply: Any) -> list[str | None] | None:
    error = caller.explained(reply)
    if error is not None and not isinstance(error, CorruptData):
        raise error
    header = None if error is not None else _texts(reply)
    if header is None or _is_damaged(header, session_id):
        leave_out(session_id, DAMAGED)
        return None
    return header


def _texts(values: list[bytes | None]) -> list[str | None] | None:
    try:
        return [None if value is None else value.decode() for value in values]
    except UnicodeDecodeError:
        return None


def _is_damaged(header: list[str | None], session_id: str) -> bool:
    """Whether there is something of which no line of a listing can be made."""
    marks = [header[_ID], header[_USER], header[_VERSION], header[_PLACE]]
    return any(marks) and (None in marks or marks[0] != session_id)


async def _forget(caller: Caller, keys: Keys, index: str, entries: list[bytes]) -> None:
    """Remove the entries of sessions that are gone, all at once.

    Whoever creates a session writes its header first and its entries later: so a look after the removal sees either
    the header, or that the entries are yet to come.
    """
    commands: list[Command] = []
    for entry in entries:
        places = {keys.ids: _id_in(keys, index, entry)} | ({keys.newest: entry} if index != keys.ids else {})
        commands += [("ZREM", key, member) for key, member in (places | {index: entry}).items()]
    await caller.call_with_refusals(commands)
    for entry, header in zip(entries, await _headers(caller, keys, index, entries), strict=True):
        if header is not None and header[_PLACE] is not None:  # it came back, and may not be listed any more
            await _correct(caller, keys, index, entry, header)


async def _correct(caller: Caller, keys: Keys, index: str, entry: bytes, header: list[Any]) -> None:
    """See that a session is listed where it is, and not where an entry says that is left over."""
    session_id = _id_in(keys, index, entry)
    has_place = index != keys.ids
    listed = Listed(session_id, header[_USER], None, header[_PLACE])
    await caller.call_with_refusals(entries_to_add(keys, listed))
    if has_place and entry[:PLACE_DIGITS] != header[_PLACE].encode():
        await caller.call("ZREM", index, entry)
    place, _ = seen_in(await caller.call(*look_for(keys, session_id)))
    await put_right(caller, keys, listed, place)


async def list_categories(caller: Caller, keys: Keys, prefix: str) -> list[str]:
    """The categories that hold documents: all, or the named one and those below it."""
    listed = await listed_categories(caller, keys, prefix)
    are_there = await caller.call_all([("EXISTS", keys.category(name)) for name in listed])
    return [name for name, is_there in zip(listed, are_there, strict=True) if is_there]
