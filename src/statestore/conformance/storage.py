"""A storage that is used for many cases: whether it is empty, and making it so."""

from __future__ import annotations

from statestore.engine import Change, DeleteCategory, DeleteSession, Engine, SessionQuery


async def is_empty(engine: Engine) -> bool:
    """Whether an open engine holds nothing at all."""
    return not await engine.list_sessions(SessionQuery(limit=1)) and not await engine.list_categories()


async def empty(engine: Engine) -> None:
    """Delete everything that an open engine holds."""
    summaries = await engine.list_sessions(SessionQuery(order="id"))
    doomed: list[Change] = [DeleteSession(summary.id) for summary in summaries]
    doomed += [DeleteCategory(category) for category in await engine.list_categories()]
    size = len(doomed) if engine.atomic_scope == "store" else 1
    for start in range(0, len(doomed), max(size, 1)):
        await engine.commit(doomed[start : start + size])
