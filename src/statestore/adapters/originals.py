"""What shortened ids of sessions stand for: the sessions' metadata tell, so those sessions are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from statestore.adapters.access import sessions_of
from statestore.adapters.identifiers import is_shortened
from statestore.adapters.several import for_each
from statestore.store.async_store import AsyncStateStore
from statestore.stored import SessionSummary


async def metadata_of_shortened(
    store: AsyncStateStore, user_id: str | None, listed: Iterable[SessionSummary]
) -> dict[str, dict[str, Any]]:
    """The metadata of those listed sessions whose ids were shortened, by their ids; not of one that is gone by now."""
    sessions = sessions_of(store, user_id)
    shortened = [summary.id for summary in listed if is_shortened(summary.id)]
    found = await for_each(store, shortened, lambda session_id: sessions.load_session(session_id, last=0))
    return {session.id: session.metadata for session in found if session is not None}
