"""`Session`: a conversation in memory, which knows what of it the store has."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from statestore.errors import InvalidValue
from statestore.history import History
from statestore.jsontext import check_label, check_text, json_text, members
from statestore.names import SessionId, check_session_id
from statestore.origin import Origin, Pending
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.stored import StoredSession
from statestore.timeline import Column, TimelineEntry, first_changed_seq, in_order
from statestore.timestamps import RisingClock, datetime_of, nanoseconds, now_text, text_of

RESERVED_METADATA_KEY: Final = "statestore"
"""Where the files engine keeps, in the seed's own layout, what the seed has no field for."""

FIELDS: Final = ("active_seed_id", "active_persona_id", "project_id", "parent_session_id")


class Session:
    """A conversation: what the user said, what the agent answered, and what happened on the way.

    Change it freely, then ``store.save_session(session)``: that sends what changed since it was loaded,
    so two writers of one session both keep all their messages.
    """

    __slots__ = (
        "_clock",
        "_created",
        "_events",
        "_id",
        "_metadata",
        "_responses",
        "_updated",
        "_user_id",
        "_user_messages",
        "active_persona_id",
        "active_seed_id",
        "changing",
        "origin",
        "parent_session_id",
        "pending",
        "project_id",
        "saving",
        "unsure",
    )

    def __init__(self, user_id: str, id: str | None = None) -> None:
        self._id = SessionId.new() if id is None else SessionId(check_session_id(id))
        self._user_id = check_label(user_id, "a user id")
        self._created = self._updated = now_text()
        self._clock: RisingClock | None = None
        self._metadata: dict[str, Any] | None = {}
        self.active_seed_id: str | None = None
        self.active_persona_id: str | None = None
        self.project_id: str | None = None
        self.parent_session_id: str | None = None
        self.origin: Origin | None = None
        self.pending: list[Pending] = []
        self.changing = threading.Lock()
        """Held for the instant in which a record is added, or a save looks at what there is."""
        self.saving: Any = None
        """The turn of whoever is saving this object; a host's."""
        self.unsure: Any = None
        """The draft of a save that ended without telling whether it happened."""
        self._hold([], [], [])

    @classmethod
    def new(cls, user_id: str) -> Session:
        """A new session with a random id."""
        return cls(user_id)

    @classmethod
    def with_id(cls, user_id: str, session_id: str) -> Session:
        """A new session with this id."""
        return cls(user_id, session_id)

    @classmethod
    def from_stored(cls, stored: StoredSession, place: str, *, is_part: bool = False) -> Session:
        """The session that an engine read, whole or only its newest part."""
        session = cls.__new__(cls)
        session._id = SessionId(stored.id)
        session._user_id = stored.fields.user_id
        session._created, session._updated = stored.fields.created, stored.fields.updated
        session._clock = session._metadata = session.saving = session.unsure = None
        for name in FIELDS:
            setattr(session, name, getattr(stored.fields, name))
        session.origin = Origin(
            stored.version,
            stored.fields,
            stored.metadata,
            stored.layout,
            place=place,
            records=stored.records,
            last_seq=stored.next_seq - 1,
            is_part=is_part,
            holds_opening=len(stored.records.decoded().users) == stored.message_count,
        )
        session.pending = []
        session.changing = threading.Lock()
        users, agents, events, _ = stored.records.decoded()
        session._hold(users, agents, events)
        return session

    def _hold(self, users: list[UserMessage], agents: list[AgentResponse], events: list[Event]) -> None:
        self._user_messages = History(users, UserMessage, self._add)
        self._responses = History(agents, AgentResponse, self._add)
        self._events = History(events, Event, self._add)

    def _add(self, records: list[Any], record: Record, key: str | None = None) -> None:
        with self.changing:
            list[Any].append(records, record)
            self.pending.append(Pending(record, key))
            if self._clock is not None:
                self._clock.see(nanoseconds(record.timestamp_text))

    @property
    def id(self) -> SessionId:
        """The session's id; it never changes."""
        return self._id

    @property
    def user_id(self) -> str:
        """Whose session it is; that never changes."""
        return self._user_id

    @property
    def histories(self) -> tuple[History[UserMessage], History[AgentResponse], History[Event]]:
        """The three lists of records."""
        return self._user_messages, self._responses, self._events

    @property
    def user_messages(self) -> History[UserMessage]:
        """What the user said. Append to it; anything else is a rewrite, which a save may refuse."""
        return self._user_messages

    @user_messages.setter
    def user_messages(self, messages: Iterable[UserMessage]) -> None:
        self._user_messages.become(messages)

    @property
    def agent_responses(self) -> History[AgentResponse]:
        """What the agent answered."""
        return self._responses

    @agent_responses.setter
    def agent_responses(self, responses: Iterable[AgentResponse]) -> None:
        self._responses.become(responses)

    @property
    def events(self) -> History[Event]:
        """Tool calls, thoughts, a framework's own items."""
        return self._events

    @events.setter
    def events(self, events: Iterable[Event]) -> None:
        self._events.become(events)

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
        if self._clock is not None:
            self._clock.see(nanoseconds(self._updated))

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
        """Anything else worth keeping, as JSON values by key."""
        if self._metadata is None:
            stored = self.origin.metadata if self.origin else b"{}"
            self._metadata = msgspec.json.decode(stored, type=dict[str, Any])
        return self._metadata

    @metadata.setter
    def metadata(self, values: dict[str, Any]) -> None:
        if not isinstance(values, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"metadata is a dict, not {type(values).__name__}")
        self._metadata = values

    @property
    def version(self) -> str | None:
        """The version this object was loaded or saved at; ``None`` if it is not stored, or no longer current."""
        if self.origin is None or self.origin.is_stale:
            return None
        return str(self.origin.version)

    @property
    def exchange_count(self) -> int:
        """How many questions have their answer."""
        return min(len(self._user_messages), len(self._responses))

    @property
    def is_empty(self) -> bool:
        """Whether the user has said nothing yet."""
        return not self._user_messages

    @property
    def timeline(self) -> list[TimelineEntry]:
        """Messages, responses and events in the order in which they happened."""
        return in_order(self.columns(), [pending.record for pending in self.pending])

    def add_user_message(self, content: str, *, key: str | None = None) -> UserMessage:
        """Note what the user said. A ``key`` makes it idempotent: a second one in this session is not stored."""
        message = UserMessage(content, timestamp=self._next_moment())
        self._say(self._user_messages, message, key)
        return message

    def add_agent_response(self, response: str | AgentResponse, *, key: str | None = None) -> AgentResponse:
        """Note what the agent answered: a text, or a whole `AgentResponse`."""
        whole = (
            response if isinstance(response, AgentResponse) else AgentResponse(response, timestamp=self._next_moment())
        )
        self._say(self._responses, whole, key)
        return whole

    def add_event(self, kind: str, data: Any = None, *, key: str | None = None) -> Event:
        """Note a tool call, a thought, anything that is neither a message nor a response."""
        event = Event(kind, data, timestamp=self._next_moment())
        self._say(self._events, event, key)
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

    def _say(self, history: History[Any], record: Record, key: str | None) -> None:
        if key is not None:
            check_label(key, "an idempotency key", may_be_empty=False)
        self._add(history, record, key)
        self.touch()

    def _next_moment(self) -> datetime:
        if self._clock is None:
            self._clock = RisingClock(nanoseconds(self._updated))
            for history in self.histories:
                if history:
                    self._clock.see(nanoseconds(history[-1].timestamp_text))
        return datetime_of(self._clock.next())

    def columns(self) -> tuple[Column, Column, Column]:
        """The three lists beside what the store has of them."""
        seqs: Sequence[Sequence[int]] = self.origin.seqs() if self.origin else ((), (), ())
        users, agents, events = (
            Column(history, history.stored_part(), numbers)
            for history, numbers in zip(self.histories, seqs, strict=True)
        )
        return users, agents, events

    def is_edited(self) -> bool:
        """Whether history was touched in any other way than by appending."""
        return any(history.stored is not None for history in self.histories)

    def rewritten_since(self) -> int | None:
        """The number of the first stored record that was removed, replaced or moved, if one was."""
        return first_changed_seq(self.columns()) if self.is_edited() else None

    def field_values(self) -> dict[str, str | None]:
        """The four optional fields, checked."""
        values: dict[str, str | None] = {}
        for name in FIELDS:
            value: object = getattr(self, name)
            check = check_label if name == "project_id" else check_text
            values[name] = None if value is None else check(value, name)
        return values

    def changed_metadata(self) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """The metadata keys to set, with their JSON, and those to unset."""
        if self._metadata is None:
            return {}, ()
        stored = members(self.origin.metadata) if self.origin else {}
        changed = {
            check_label(key, "a metadata key"): check_metadata(key, value)
            for key, value in self._metadata.items()
            if key not in stored or not _is_same(value, stored[key])
        }
        return changed, tuple(key for key in stored if key not in self._metadata)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a Session cannot be copied or pickled, because two copies would not know what the other one saved: "
            "load it again, or use fork_session"
        )

    def __repr__(self) -> str:
        counts = f"{len(self._user_messages)} messages, {len(self._responses)} responses, {len(self._events)} events"
        return f"<Session {self._id} of {self._user_id!r}: {counts}>"


def check_metadata(key: object, value: Any) -> bytes:
    """The JSON of a metadata value; `InvalidValue` if the key or the value cannot be kept."""
    label = check_label(key, "a metadata key")
    if label == RESERVED_METADATA_KEY:
        raise InvalidValue(f"the metadata key {label!r} is reserved: the files engine keeps its own notes there")
    return json_text(value, f"metadata[{label!r}]")


def _is_same(value: Any, stored: bytes) -> bool:
    """Whether a value is what this JSON stands for, types included (1 is neither True nor 1.0)."""
    original = msgspec.json.decode(stored)
    try:
        text = json_text(value, "")
    except InvalidValue:
        return value == original  # beyond our limits, which is no matter if it was read so
    return text in (stored, msgspec.json.encode(original))
