"""`Session`: a conversation in memory, which knows what of it the store has."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from statestore.errors import CorruptSession, InvalidValue
from statestore.history import History
from statestore.jsontext import check_label, check_text
from statestore.ledger import Ledger, Origin, check_metadata
from statestore.names import SessionId, check_session_id
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.stored import OPTIONAL_FIELDS, SessionFields, StoredSession
from statestore.timeline import TimelineEntry, in_order
from statestore.timestamps import RisingClock, datetime_of, nanoseconds, now_text, text_of

T = TypeVar("T")


class Session:
    """A conversation: what the user said, what the agent answered, and what happened on the way.

    Change it freely, then ``store.save_session(session)``: that sends what changed since it was loaded,
    so two writers of one session both keep all their messages.
    """

    __slots__ = (
        "_created",
        "_id",
        "_ledger",
        "_updated",
        "_user_id",
        "active_persona_id",
        "active_seed_id",
        "parent_session_id",
        "project_id",
    )

    def __init__(self, user_id: str, id: str | None = None) -> None:
        self._id = check_session_id(SessionId.new() if id is None else id)
        self._user_id = check_label(user_id, "a user id")
        self._created = self._updated = now_text()
        self.active_seed_id: str | None = None
        """What the agent works on, if that has a name; the store keeps it, and reads nothing into it."""
        self.active_persona_id: str | None = None
        """Who the agent speaks as, likewise."""
        self.project_id: str | None = None
        """The project that the session belongs to; listings and searches can ask for it."""
        self.parent_session_id: str | None = None
        """The session that it was forked from, or works for; listings can ask for it. It need not be there."""
        self._ledger = Ledger(None, ([], [], []))

    @classmethod
    def new(cls, user_id: str) -> Session:
        """A new session with a random id."""
        return cls(user_id)

    @classmethod
    def with_id(cls, user_id: str, session_id: str) -> Session:
        """A new session with this id."""
        return cls(user_id, session_id)

    @classmethod
    def _of(cls, stored: StoredSession, place: str, *, is_part: bool) -> Session:
        session = cls.__new__(cls)  # what is stored is taken as it is, even what we would not write
        session._id, session._user_id = stored.id, stored.fields.user_id
        session._created, session._updated = stored.fields.created, stored.fields.updated
        for name in OPTIONAL_FIELDS:
            setattr(session, name, getattr(stored.fields, name))
        users, agents, events = stored.records.decoded()
        origin = Origin(
            stored.version,
            stored.fields,
            stored.metadata,
            stored.layout,
            place=place,
            numbering=stored.records.numbers(),
            last_seq=stored.next_seq - 1,
            is_part=is_part,
            holds_opening=len(users) == stored.message_count,
        )
        session._ledger = Ledger(origin, (users, agents, events))
        return session

    @property
    def id(self) -> str:
        """The session's id; it never changes."""
        return self._id

    @property
    def user_id(self) -> str:
        """Whose session it is; that never changes."""
        return self._user_id

    @property
    def user_messages(self) -> History[UserMessage]:
        """What the user said. Append to it; anything else is a rewrite, which a save may refuse."""
        return self._ledger.shelves[0].records

    @user_messages.setter
    def user_messages(self, messages: Iterable[UserMessage]) -> None:
        _replace(self.user_messages, messages)

    @property
    def agent_responses(self) -> History[AgentResponse]:
        """What the agent answered."""
        return self._ledger.shelves[1].records

    @agent_responses.setter
    def agent_responses(self, responses: Iterable[AgentResponse]) -> None:
        _replace(self.agent_responses, responses)

    @property
    def events(self) -> History[Event]:
        """Tool calls, thoughts, a framework's own items."""
        return self._ledger.shelves[2].records

    @events.setter
    def events(self, events: Iterable[Event]) -> None:
        _replace(self.events, events)

    @property
    def created_at(self) -> datetime:
        """When the session began, in UTC."""
        return datetime_of(self._created)

    @property
    def updated_at(self) -> datetime:
        """When the session was last changed, in UTC."""
        return datetime_of(self._updated)

    @updated_at.setter
    def updated_at(self, moment: datetime) -> None:
        self._updated = text_of(moment)
        if self._ledger.clock is not None:
            self._ledger.clock.see(nanoseconds(self._updated))

    @property
    def created_text(self) -> str:
        """``created_at`` with all its digits."""
        return self._created

    @property
    def updated_text(self) -> str:
        """``updated_at`` with all its digits."""
        return self._updated

    @property
    def metadata(self) -> dict[str, Any]:
        """Anything else worth keeping, as JSON values by key; ``del session.metadata[key]`` removes one."""
        ledger = self._ledger
        if ledger.metadata is None:
            stored = ledger.origin.metadata if ledger.origin else b"{}"
            try:
                ledger.metadata = msgspec.json.decode(stored, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise CorruptSession(f"session {self.id}: its metadata cannot be decoded: {error}") from error
        return ledger.metadata

    @metadata.setter
    def metadata(self, values: dict[str, Any]) -> None:
        if not isinstance(values, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"metadata is a dict, not {type(values).__name__}")
        self._ledger.metadata = values

    @property
    def version(self) -> str | None:
        """The version this object was loaded or saved at; ``None`` if it is not stored, or no longer current."""
        origin = self._ledger.origin
        return None if origin is None or origin.is_stale else str(origin.version)

    @property
    def exchange_count(self) -> int:
        """How many questions have their answer; after ``load_session(last=…)``, in the loaded part only."""
        return min(len(self.user_messages), len(self.agent_responses))

    @property
    def is_empty(self) -> bool:
        """Whether the user has said nothing yet; after ``load_session(last=…)``, in the loaded part only."""
        return not self.user_messages

    @property
    def timeline(self) -> list[TimelineEntry]:
        """Messages, responses and events in the order in which they happened."""
        return in_order(self._ledger.columns(), [pending.record for pending in self._ledger.pending])

    def add_user_message(self, content: str, *, key: str | None = None) -> UserMessage:
        """Note what the user said. A ``key`` makes it idempotent: a second one in this session is not stored."""
        message = UserMessage(content, timestamp=self._next_moment())
        self._say(message, key)
        return message

    def add_agent_response(self, response: str | AgentResponse, *, key: str | None = None) -> AgentResponse:
        """Note what the agent answered: a text, or a whole `AgentResponse`."""
        whole = (
            response if isinstance(response, AgentResponse) else AgentResponse(response, timestamp=self._next_moment())
        )
        self._say(whole, key)
        return whole

    def add_event(self, kind: str, data: Any = None, *, key: str | None = None) -> Event:
        """Note a tool call, a thought, anything that is neither a message nor a response."""
        event = Event(kind, data, timestamp=self._next_moment())
        self._say(event, key)
        return event

    def set_active_seed(self, seed_id: str | None) -> None:
        """Set or, with ``None``, unset the active seed."""
        self.active_seed_id = seed_id
        self.touch()

    def set_active_persona(self, persona_id: str | None) -> None:
        """Set or, with ``None``, unset the active persona."""
        self.active_persona_id = persona_id
        self.touch()

    def set_metadata(self, key: str, value: Any) -> None:
        """Set one metadata key to a JSON value."""
        check_metadata(key, value)
        self.metadata[key] = value
        self.touch()

    def get_metadata(self, key: str) -> Any:
        """A metadata value, or ``None``."""
        return self.metadata.get(key)

    def touch(self) -> None:
        """Set ``updated_at`` to now."""
        self._updated = text_of(self._next_moment())

    def _say(self, record: Record, key: str | None) -> None:
        if key is not None:
            check_label(key, "an idempotency key", may_be_empty=False)
        self._ledger.add(record, key)
        self.touch()

    def _next_moment(self) -> datetime:
        clock = self._ledger.clock
        if clock is None:
            clock = self._ledger.clock = RisingClock(nanoseconds(self._updated))
            for shelf in self._ledger.shelves:
                if shelf.records:
                    clock.see(nanoseconds(shelf.records[-1].timestamp_text))
        return datetime_of(clock.next())

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Session cannot be copied or pickled, because two copies would not know what the other one saved: "
            "load it again, or use fork_session"
        )

    def __repr__(self) -> str:
        counts = f"{len(self.user_messages)} messages, {len(self.agent_responses)} responses, {len(self.events)} events"
        return f"<Session {self._id} of {self._user_id!r}: {counts}>"


def ledger_of(session: Session) -> Ledger:
    """The books of a session object, for who saves it."""
    return session._ledger  # pyright: ignore[reportPrivateUsage] - this function is the way in


def session_of(stored: StoredSession, place: str, *, is_part: bool = False) -> Session:
    """The session that an engine at this place read, whole or only its newest part."""
    return Session._of(stored, place, is_part=is_part)  # pyright: ignore[reportPrivateUsage] - for the store alone


def field_values(session: Session, stored: SessionFields | None) -> dict[str, str | None]:
    """The four optional fields, checked; what another program stored is taken as it is."""
    values: dict[str, str | None] = {}
    for name in OPTIONAL_FIELDS:
        value: Any = getattr(session, name)
        if value is not None and (stored is None or value != getattr(stored, name)):
            value = check_label(value, name) if name == "project_id" else check_text(value, name)
        values[name] = value
    return values


def _replace(history: History[T], records: Iterable[T]) -> None:
    """Hold these records instead; the list itself, as after ``+=``, changes nothing."""
    if records is not history:
        history[:] = records
