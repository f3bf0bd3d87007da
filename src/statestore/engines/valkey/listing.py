"""Listing and counting sessions by the indexes of one server: newest first, of everybody or of one user, or by id."""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

from statestore.engine import SessionQuery
from statestore.engines.selecting import has_filters
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys, place_in_listing
from statestore.engines.valkey.ordering import Owned, owned_by_id
from statestore.engines.valkey.scripts import LIST
from statestore.errors import InvalidValue
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds

PAGE: Final = 500
"""How many entries are looked at in one call: meanwhile the server does nothing else."""
DAMAGED: Final = "its header is damaged, or none of ours"
"""Why a session cannot be listed."""

log = logging.getLogger("statestore")
_pack = msgspec.msgpack.Encoder().encode
_parts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_row = msgspec.msgpack.Decoder(list[Any]).decode


def index_of(keys: Keys, query: SessionQuery) -> str:
    """The index that answers a query."""
    if query.order == "id":
        return keys.ids
    return keys.newest if query.user_id is None else keys.newest_of(query.user_id)


def bounds_of(query: SessionQuery) -> tuple[bytes, bytes]:
    """Where in its index a query begins and ends."""
    start, end = b"-", b"+"
    is_by_id = query.order == "id"
    if query.after is not None:
        place = "" if is_by_id else place_in_listing(query.after.updated_ns)
        start = f"({place}{query.after.id}".encode()
    if query.updated_since_ns is not None and not is_by_id:
        end = f"[{place_in_listing(query.updated_since_ns)}".encode() + b"\xff"
    return start, end


def is_told_by_index(keys: Keys, index: str, query: SessionQuery) -> bool:
    """Whether a query selects everything that its index holds between its bounds."""
    if index != keys.ids:
        query = msgspec.structs.replace(query, user_id=None)
    if query.order == "updated":
        query = msgspec.structs.replace(query, updated_since_ns=None)
    return not has_filters(query)


def _selection(
    keys: Keys, query: SessionQuery, index: str, page: int | None, *, may_clean: bool, only_counts: bool = False
) -> bytes:
    """What a page's script is asked for; no page if the entries are named."""
    wanted = (query.user_id, query.project_id, query.parent_session_id)
    oldest = None if query.updated_since_ns is None else place_in_listing(query.updated_since_ns)
    return _pack(
        (
            keys.prefix,
            index,
            index == keys.ids,
            page or False,
            *(False if value is None else value for value in wanted),
            query.top_level,
            oldest or False,
            may_clean,
            only_counts,
        )
    )


async def list_sessions(caller: Caller, keys: Keys, query: SessionQuery, *, may_clean: bool) -> list[SessionSummary]:
    """The sessions that a query selects."""
    owned = await owned_by_id(caller, keys, query)
    if owned is not None:
        return await _list_owned(caller, keys, query, owned, may_clean=may_clean)
    index, (start, end) = index_of(keys, query), bounds_of(query)
    limit = None if query.limit is None else max(query.limit, 0)
    is_filtered = not is_told_by_index(keys, index, query)
    found: list[SessionSummary] = []
    looked_at = 0
    while limit is None or len(found) < limit:
        page = PAGE if limit is None or is_filtered else _next_page(limit, len(found), looked_at)
        looked_at += page
        selection = _selection(keys, query, index, page, may_clean=may_clean)
        rows, last = await caller.run(LIST, (keys.newest,), selection, start, end)
        found += [summary for row in _parts(rows) if (summary := _summary_in(row)) is not None]
        if last is None:
            break
        start = b"(" + last
    return found[:limit]


async def _list_owned(
    caller: Caller, keys: Keys, query: SessionQuery, owned: Owned, *, may_clean: bool
) -> list[SessionSummary]:
    """The sessions that a query selects among those of its user, which are in its order."""
    index, entries = owned
    selection = _selection(keys, query, index, None, may_clean=may_clean)
    limit = len(entries) if query.limit is None else query.limit
    is_filtered = not is_told_by_index(keys, index, query)
    found: list[SessionSummary] = []
    start = 0
    while start < len(entries) and len(found) < limit:
        page = PAGE if is_filtered else _next_page(limit, len(found), start)
        rows, _ = await caller.run(LIST, (keys.newest,), selection, *entries[start : start + page])
        found += [summary for row in _parts(rows) if (summary := _summary_in(row)) is not None]
        start += page
    return found[:limit]


def _next_page(limit: int, found: int, looked_at: int) -> int:
    """How many entries are looked at next: what is missing, and as many more as were in vain, for so may these be."""
    return min(PAGE, limit - found + looked_at - found)


async def count_sessions(caller: Caller, keys: Keys, query: SessionQuery, *, may_clean: bool) -> int:
    """How many sessions a query selects, ``limit`` and ``after`` aside."""
    query = msgspec.structs.replace(query, order="updated", after=None)
    index, (start, end) = index_of(keys, query), bounds_of(query)
    if is_told_by_index(keys, index, query) and not await caller.call("HEXISTS", keys.store, "expires"):
        return await caller.call("ZLEXCOUNT", index, start, end)
    count = 0
    while True:
        selection = _selection(keys, query, index, PAGE, may_clean=may_clean, only_counts=True)
        some, last = await caller.run(LIST, (keys.newest,), selection, start, end)
        count += some
        if last is None:
            return count
        start = b"(" + last


def _summary_in(packed: msgspec.Raw) -> SessionSummary | None:
    """The summary in a row; ``None``, and a warning, if there is none to be made of it."""
    try:
        row = _row(packed)
    except UnicodeDecodeError:
        leave_out(_shown(_parts(packed)[0]), DAMAGED)
        return None
    if len(row) == 1:
        leave_out(row[0], DAMAGED)
        return None
    return summary_of(row)


def _shown(packed: msgspec.Raw) -> str:
    """A text, as far as it is one."""
    try:
        return str(msgspec.msgpack.decode(packed))
    except UnicodeDecodeError:
        return repr(bytes(packed))


def leave_out(session_id: str, why: str) -> None:
    """Tell that a session cannot be listed."""
    log.warning("session %s is left out of the listing: %s; check() tells more", session_id, why)


def summary_of(row: list[Any]) -> SessionSummary | None:
    """The summary in a header's fields; ``None``, and a warning, if there is none to be made of them."""
    values: list[Any] = [None if value is False else value for value in row]
    session_id, user_id, users, created, updated, agents, events, *rest = values
    seed, persona, project_id, project, projects, parent, title, opening, size, version, _ = rest
    try:
        nanoseconds(created)
        nanoseconds(updated)
        return SessionSummary(
            id=session_id,
            user_id=user_id,
            message_count=int(users),
            created_text=created,
            updated_text=updated,
            response_count=int(agents),
            event_count=int(events),
            active_seed_id=seed,
            active_persona_id=persona,
            project_id=next((text for text in (project_id, project, projects) if text is not None), None),
            parent_session_id=parent,
            title=opening if title is None else title,
            size=int(size),
            version=version,
        )
    except (InvalidValue, TypeError, ValueError) as error:
        leave_out(session_id, f"its header makes no sense: {error}")
        return None


async def list_categories(caller: Caller, keys: Keys, prefix: str) -> list[str]:
    """The categories that are listed: all, or the named one and those below it."""
    if not prefix:
        return [name.decode() for name in await caller.call("ZRANGE", keys.categories, 0, -1)]
    score, below = await caller.call_all(
        [
            ("ZSCORE", keys.categories, prefix),
            ("ZRANGEBYLEX", keys.categories, f"[{prefix}/", f"({prefix}0"),  # a 0 comes right after a slash
        ]
    )
    return [*([] if score is None else [prefix]), *(name.decode() for name in below)]
