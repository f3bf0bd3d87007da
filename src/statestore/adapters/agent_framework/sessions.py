"""Snapshots of the sessions of the Agent Framework: an agent's session with all its state.

A snapshot is a session of the store, ``<id>:session-store``. The conversation that a snapshot carries, where the agent
keeps it in its state, becomes the session's messages; the rest of the state is its metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from agent_framework import AgentSession, SessionStore

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.agent_framework import NAME
from statestore.adapters.handoff import stored_items_for
from statestore.adapters.identifiers import joined_text
from statestore.session import Session

_SNAPSHOT: Final = NAME
_CONVERSATION: Final = f"{NAME}:conversation"
"""The metadata keys: the snapshot without its conversation, and where in its state that was."""


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
            place.hold(stored, items)

        await self._access.run(lambda store: place.put(store, hold))

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
