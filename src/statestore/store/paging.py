"""Reading a page of a long session."""

from __future__ import annotations

from statestore.engine import Engine
from statestore.stored import StoredSession


async def read_page(
    engine: Engine, session_id: str, *, after: int | None, before: int | None, limit: int | None
) -> StoredSession | None:
    """A session with at most ``limit`` of the records above ``after`` and below ``before``.

    They are the newest ones; but with ``after`` alone the oldest, so that whoever reads on from there misses none.
    """
    if after is None or before is not None or limit is None:
        return await engine.read_session(session_id, after=after, before=before, last=limit)
    end = after + limit + 1
    page = await engine.read_session(session_id, after=after, before=end)
    if page is None or end >= page.next_seq or _count(page) == limit:
        return page
    rest = await engine.read_session(session_id, after=after)  # some numbers are not in use
    if rest is None or _count(rest) <= limit:
        return rest
    return await engine.read_session(session_id, after=after, before=rest.records.numbering.in_order()[limit])


def _count(stored: StoredSession) -> int:
    return sum(map(len, stored.records.numbering.columns))
