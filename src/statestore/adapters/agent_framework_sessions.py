"""Snapshots of the sessions of the Agent Framework: an agent's session with all its state.

A snapshot is a session of the store, ``<id>:session-store``. The conversation that a snapshot carries, where the agent
keeps it in its state, becomes the session's messages; the rest of the state is its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.agent_framework_items import NAME, records_of
from statestore.adapters.conversations import ATTEMPTS, NOTHING, Conversation, discard, extend
from statestore.adapters.handoff import stored_items_for
from statestore.adapters.identifiers import joined_text
from statestore.adapters.items import is_aside, item_in
from statestore.adapters.requirements import check_version, unavailable
from statestore.errors import SessionConflict, SessionNotFound
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore

try:
    from agent_framework import AgentSession, SessionStore
except ImportError as error:
    raise unavailable("agent-framework") from error
check_version("agent-framework")

__all__ = ["StateStoreSessionStore"]

_SNAPSHOT: Final = NAME
_CONVERSATION: Final = f"{NAME}:conversation"
"""The metadata keys: the snapshot without its conversation, and where in its state that was."""
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class StateStoreSessionStore(ClosesItsStore, SessionStore):
    """A `SessionStore`: snapshots of sessions under ids.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and `close` closes it. With a ``user_id`` the sessions are that user's. A snapshot replaces
    the one before it, entirely; of the conversation, only what is new is written.
    """

    def __init__(self, store: Target, *, user_id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._access = Access(store, opens="async")
        self._user_id = user_id
        self._metadata = dict(metadata or {})

    async def get(self, session_id: str) -> AgentSession | None:
        """The session that was stored under an id, or ``None``."""
        place = self._conversation(session_id)
        stored = await self._access.run(lambda store: place.sessions(store).load_session(place.id))
        if stored is None or _SNAPSHOT not in stored.metadata:
            return None
        snapshot = stored.metadata[_SNAPSHOT]
        if (source := stored.metadata.get(_CONVERSATION)) is not None:
            items = stored_items_for(NAME, [entry.record for entry in stored.timeline])
            snapshot["state"][source]["messages"] = items
        return AgentSession.from_dict(snapshot)

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Store a session under an id, in place of what was there."""
        if type(session) is not AgentSession:
            raise TypeError("only an AgentSession itself is stored: what its subclasses add would be lost")
        place = self._conversation(session_id)
        snapshot = session.to_dict()
        if isinstance(snapshot["service_session_id"], Mapping):
            snapshot["service_session_id"] = dict(cast("Mapping[str, Any]", snapshot["service_session_id"]))
        source, items = _conversation_in(snapshot)

        def hold(stored: Session) -> None:
            stored.set_metadata(_SNAPSHOT, snapshot)
            stored.set_metadata(_CONVERSATION, source)
            _hold(stored, items)

        async def put(store: AsyncStateStore) -> None:
            sessions = place.sessions(store)
            for _ in range(ATTEMPTS):
                try:
                    await sessions.update_session_with(place.id, hold)
                except SessionNotFound:
                    new = Session(self._user_id or "", place.id)
                    new.metadata = dict(place.metadata)
                    hold(new)
                    try:
                        await sessions.save_session(new)
                    except SessionConflict:
                        continue  # somebody was faster: theirs is the session
                return
            raise SessionConflict(f"session {place.id} was made and deleted {ATTEMPTS} times meanwhile")

        await self._access.run(put)

    async def delete(self, session_id: str) -> None:
        """Remove what was stored under an id, if there is anything."""
        await self._access.run(self._conversation(session_id).clear)

    def _conversation(self, session_id: str) -> Conversation:
        self.validate_session_id(session_id)
        named = joined_text(session_id, "session-store")
        return Conversation.of(NAME, named, user_id=self._user_id, metadata=self._metadata)


def _conversation_in(snapshot: dict[str, Any]) -> tuple[str | None, list[Any]]:
    """The messages that some provider keeps in the state, taken out of it; and whose they are."""
    state = cast("dict[str, Any]", snapshot["state"])
    for source, values in state.items():
        if not isinstance(values, dict):
            continue
        kept = cast("dict[str, Any]", values)
        if _is_conversation(kept.get("messages")):
            state[source] = {name: value for name, value in kept.items() if name != "messages"}
            return source, kept["messages"]
    return None, []


def _is_conversation(messages: Any) -> bool:
    if not isinstance(messages, list):
        return False
    return all(
        isinstance(one, dict) and cast("dict[str, Any]", one).get("type") == "message"
        for one in cast("list[Any]", messages)
    )


def _hold(session: Session, items: Sequence[Any]) -> None:
    """Have a session object hold these messages, and of its records those that stay the same."""
    records = [entry.record for entry in session.timeline]
    kept = same = 0
    for record in records:
        if not is_aside(NAME, record):
            item = item_in(NAME, record)
            if item is NOTHING or same == len(items) or _encode(item) != _encode(items[same]):
                break
            same += 1
        kept += 1
    discard(session, records[kept:])
    extend(session, [record for item in items[same:] for record in records_of(item)])
