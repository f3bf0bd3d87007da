"""Deleting a conversation. What forks of it still need is kept, and goes with the last of them."""

from __future__ import annotations

from pydantic_ai.conversation_store import ConversationConflict

from statestore.adapters.committing import committed
from statestore.adapters.dialects.pydantic_ai import NAME
from statestore.adapters.identifiers import stored_id
from statestore.adapters.pydantic_ai.entries import entries_in
from statestore.adapters.pydantic_ai.finding import Finder
from statestore.adapters.pydantic_ai.kept import FORKS, Held, held_in
from statestore.adapters.several import for_each
from statestore.engine import Change, ChangeSession, DeleteSession, Requires
from statestore.errors import SessionConflict
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import StoredSession
from statestore.timestamps import now_text


async def delete(store: AsyncStateStore, finder: Finder, conversation_id: str, expected_revision: str) -> None:
    """Remove a conversation at a revision; ``ConversationConflict`` if there is none."""
    session_id = str(stored_id(conversation_id))
    for _ in range(MAX_ATTEMPTS):
        stored = await engine_of(store).read_session(session_id)
        held = Held() if stored is None else held_in(stored)
        if stored is None or held.kept is None or held.kept.revision != expected_revision:
            raise ConversationConflict(conversation_id)
        if await _is_gone(store, finder, stored, await _needing(store, stored)):
            return
    raise SessionConflict(f"conversation {session_id} changed {MAX_ATTEMPTS} times while it was being deleted")


async def _needing(store: AsyncStateStore, stored: StoredSession) -> list[str]:
    """Of the sessions whose histories lead through one, those that are still needed."""
    forks = held_in(stored).forks
    needed = await for_each(store, forks, lambda fork: _is_needed(store, fork, {stored.id}))
    return [fork for fork, is_needed in zip(forks, needed, strict=True) if is_needed]


async def _is_needed(store: AsyncStateStore, session_id: str, seen: set[str]) -> bool:
    """Whether a session holds a conversation, or entries of one. What is left of deleted ones may need each other."""
    seen.add(session_id)
    stored = await engine_of(store).read_session(session_id, last=0)
    if stored is None:
        return False
    held = held_in(stored)
    if held.kept is not None:
        return True
    for fork in held.forks:
        if fork not in seen and await _is_needed(store, fork, seen):
            return True
    return False


async def _is_gone(store: AsyncStateStore, finder: Finder, stored: StoredSession, forks: list[str]) -> bool:
    """Remove a session, or its record alone if forks need its entries; whether nobody came between."""
    change: Change = DeleteSession(stored.id, Requires(version=stored.version))
    if forks:
        change = ChangeSession(
            id=stored.id,
            updated=now_text(),
            requires=Requires(present=True, version=stored.version),
            set_fields={"project_id": None},
            set_metadata={FORKS: json_text(forks, FORKS)},
            unset_metadata=(NAME,),
        )
    entries = await entries_in(store, stored)
    if await committed(store, [change]) is None:
        return False
    if not forks:
        finder.forget(stored.id)
        kept = held_in(stored).kept
        parents = {entry.link.place for entry in entries.values()} | set(kept.places.values() if kept else ())
        for parent in sorted(place for place in parents if place is not None):
            await _release(store, finder, parent, stored.id)
    return True


async def _release(store: AsyncStateStore, finder: Finder, session_id: str, fork: str) -> None:
    """A fork is gone: remove what was kept only for it."""
    for _ in range(MAX_ATTEMPTS):
        stored = await engine_of(store).read_session(session_id)
        held = Held() if stored is None else held_in(stored)
        if stored is None or fork not in held.forks:
            return
        others = await _needing(store, stored)
        if held.kept is None and not others:
            if await _is_gone(store, finder, stored, []):
                return
            continue
        change = ChangeSession(
            id=session_id,
            updated=stored.fields.updated,
            requires=Requires(present=True, version=stored.version),
            set_metadata={FORKS: json_text(others, FORKS)},
        )
        if await committed(store, [change]) is not None:
            return
