"""Strands' contract for sessions, on a statestore, and the manager that its agents take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from strands.session.repository_session_manager import RepositorySessionManager
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType, decode_bytes_values

from statestore.adapters.access import Access, ClosesEitherWay, Target
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.strands import NAME, records_of
from statestore.adapters.strands.messages import AgentMessages
from statestore.errors import SessionConflict, SessionNotFound
from statestore.session import Session as StoredSession

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase

    from statestore.store.async_store import AsyncStateStore

_SESSION: Final = "strands"
_AGENT: Final = "strands:agent:"
_MULTI_AGENT: Final = "strands:multi-agent:"
"""The metadata keys that hold the framework's own session, agents and multi-agents."""
_MESSAGE_FIELDS: Final = frozenset(field.name for field in fields(SessionMessage))


class StateStoreRepository(ClosesEitherWay, SessionRepository):
    """A `SessionRepository`: sessions with their agents, and the messages of each.

    ``store`` is an open `StateStore`, or a URL or path: then it is opened on first use, and `close` closes it. With a
    ``user_id`` the sessions are that user's, and nobody else's are ever touched. ``metadata`` is what a new session
    gets.

    Two processes may write one session at once. Both number their messages by themselves, so a number may be given
    twice; no message takes the place of another one for that.
    """

    def __init__(self, store: Target, *, user_id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        self._access = Access(store, opens="plain")
        self._user_id = user_id
        self._metadata = dict(metadata or {})

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Make a session. `SessionException` if it is there already."""
        place = self._conversation(session.session_id, {_SESSION: session.to_dict()})
        try:
            self._access.call(place.create)
        except SessionConflict as error:
            raise SessionException(f"Session {session.session_id} already exists") from error
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session, whoever made it; ``None`` if there is none."""
        stored = self._stored(session_id)
        if stored is None:
            return None
        known = stored.metadata.get(_SESSION)
        if known is None:  # another framework's, or a program's own
            return Session(session_id, SessionType.AGENT, stored.created_at.isoformat(), stored.updated_at.isoformat())
        return Session.from_dict(known)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Remove a session with everything in it. `SessionException` if there is none."""
        if not self._access.call(self._conversation(session_id).clear):
            raise _missing(session_id)

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Note an agent of a session."""
        self._change_metadata(session_id, _AGENT + session_agent.agent_id, lambda _: session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """An agent of a session, or ``None``."""
        known = self._metadatum(session_id, _AGENT + agent_id)
        return None if known is None else SessionAgent.from_dict(known)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Note what an agent's state is now. When it was created stays as it is."""

        def update(known: Any) -> dict[str, Any]:
            if known is None:
                raise SessionException(f"Agent {session_agent.agent_id} in session {session_id} does not exist")
            session_agent.created_at = known["created_at"]
            return session_agent.to_dict()

        self._change_metadata(session_id, _AGENT + session_agent.agent_id, update)

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Add a message of an agent."""
        records = records_of(session_message.to_dict(), agent_id)
        sessions = self._conversation(session_id)
        try:
            self._access.call(lambda store: sessions.sessions(store).append(sessions.id, *records))
        except SessionNotFound as error:
            raise _missing(session_id) from error

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """The message with a number, or ``None``; of several, the last that was added."""
        items = self._items(session_id, agent_id)
        found = [item for item in items if item.get("message_id") == message_id]
        return message_from(found[-1]) if found else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Put a message in the place of one with the same number: it was redacted."""
        messages = AgentMessages(self._conversation(session_id), agent_id)

        def redacted(known: dict[str, Any]) -> dict[str, Any]:
            session_message.created_at = known["created_at"]
            return session_message.to_dict()

        created_at = session_message.created_at
        number = session_message.message_id
        if not self._access.call(lambda store: messages.change(store, number, created_at, redacted)):
            raise SessionException(f"Message {number} does not exist")

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent, in order; those of other frameworks in the session belong to every agent."""
        items = self._items(session_id, agent_id)
        if not items and self.read_agent(session_id, agent_id) is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        end = None if limit is None else offset + limit
        return [message_from(item) for item in items[offset:end]]

    def messages_of(self, session_id: str, agent_id: str) -> list[SessionMessage]:
        """All messages that an agent has, or would begin with if it were there."""
        return [message_from(item) for item in self._items(session_id, agent_id)]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Note the state of several agents that work together."""
        self._change_metadata(session_id, _MULTI_AGENT + multi_agent.id, lambda _: multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The state of several agents that work together, or ``None``."""
        return self._metadatum(session_id, _MULTI_AGENT + multi_agent_id)

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Note what the state of several agents is now."""
        state = multi_agent.serialize_state()

        def update(known: Any) -> dict[str, Any]:
            if known is None:
                raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
            return state

        self._change_metadata(session_id, _MULTI_AGENT + multi_agent.id, update)

    def _conversation(self, session_id: str, metadata: Mapping[str, Any] | None = None) -> Conversation:
        birth = {**self._metadata, **(metadata or {})}
        return Conversation.of(NAME, session_id, user_id=self._user_id, metadata=birth)

    def _stored(self, session_id: str) -> StoredSession | None:
        """The session without its messages."""
        place = self._conversation(session_id)
        return self._access.call(lambda store: place.sessions(store).load_session(place.id, last=0))

    def _metadatum(self, session_id: str, key: str) -> Any:
        stored = self._stored(session_id)
        return None if stored is None else stored.metadata.get(key)

    def _change_metadata(self, session_id: str, key: str, change: Callable[[Any], Any]) -> None:
        """Change one value of a session's metadata; everything else stays as others left it."""
        place = self._conversation(session_id)

        def apply(session: StoredSession) -> None:
            session.set_metadata(key, change(session.metadata.get(key)))

        async def work(store: AsyncStateStore) -> None:
            await place.sessions(store).update_session_with(place.id, apply, last=0)

        try:
            self._access.call(work)
        except SessionNotFound as error:
            raise _missing(session_id) from error

    def _items(self, session_id: str, agent_id: str) -> list[dict[str, Any]]:
        messages = AgentMessages(self._conversation(session_id), agent_id)
        return self._access.call(messages.items)


class StateStoreSessionManager(ClosesEitherWay, RepositorySessionManager):
    """A session manager for an agent, or for several that work together: one session of a `StateStoreRepository`."""

    def __init__(
        self,
        session_id: str,
        store: Target,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.repository = StateStoreRepository(store, user_id=user_id, metadata=metadata)
        super().__init__(session_id, self.repository, **kwargs)

    def initialize(self, agent: Any, **kwargs: Any) -> None:
        """Have an agent go on with its messages; one that is new here, with what others wrote into the session.

        Messages that it was given are stored, but for those, if it was given them too. If it was given others, it
        begins with these alone.
        """
        if self.repository.read_agent(self.session_id, agent.agent_id) is None:
            self._let_begin(agent)
        super().initialize(agent, **kwargs)

    def _let_begin(self, agent: Any) -> None:
        """Note a new agent that is to have what others wrote: then it is restored, as one that was here before."""
        known = self.repository.messages_of(self.session_id, agent.agent_id)
        given: list[Any] = agent.messages
        if not known or (given and not _begins_with(given, [one.to_message() for one in known])):
            return
        self.repository.create_agent(self.session_id, SessionAgent.from_agent(agent))
        for number, message in enumerate(given[len(known) :], known[-1].message_id + 1):
            added = SessionMessage.from_message(message, number)
            self.repository.create_message(self.session_id, agent.agent_id, added)

    def close(self) -> None:
        """Close the store, if it was opened here."""
        self.repository.close()

    async def aclose(self) -> None:
        """Close the store, if it was opened here."""
        await self.repository.aclose()


def message_from(item: Mapping[str, Any]) -> SessionMessage:
    """A stored message as the framework's own; fields that this version does not know stay where they are."""
    known = {name: value for name, value in item.items() if name in _MESSAGE_FIELDS}
    return SessionMessage(**decode_bytes_values(known))


def _begins_with(messages: Sequence[Any], known: Sequence[Any]) -> bool:
    """Whether messages say first what is known, whatever was noted beside them."""
    first = [(message["role"], message["content"]) for message in messages[: len(known)]]
    return first == [(message["role"], message["content"]) for message in known]


def _missing(session_id: str) -> SessionException:
    return SessionException(f"Session {session_id} does not exist")
