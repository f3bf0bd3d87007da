"""Appending an event: one commit that stores it, with all that it changes, if the session is not stale.

An event that changes no state is added at the version that its session object has seen, without a look at the store
before. If somebody else wrote meanwhile, or state is to change, what is stored is read, judged, and built on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import from_json

from statestore.adapters.committing import committed
from statestore.adapters.google_adk.events import FOREIGN, Outline, new_records, outline_of, text_of_event, texts_in
from statestore.adapters.google_adk.moments import seconds_of, text_of_seconds
from statestore.adapters.google_adk.places import Place, StatePlace
from statestore.adapters.google_adk.scopes import json_scopes_of, scopes_of
from statestore.adapters.google_adk.seen import Seen, seen_by, seen_in
from statestore.adapters.google_adk.shared import HeldShared, Shared, SharedPair, change_shared, read_shared
from statestore.adapters.google_adk.staleness import StaleSessionError
from statestore.adapters.several import for_each
from statestore.engine import ChangeSession, Outcome, PutDocument, Requires
from statestore.errors import SessionConflict
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.reading import understanding
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import StoredSession

StaleWhen = Literal["superseded", "overwriting"]
STATE: Final = "state"
"""The metadata key that holds a session's own state."""
_NEWEST: Final = 16
"""How many records are looked at for the last event, where an object does not tell what it has seen."""


class Held(Struct):
    """Of a session's metadata, what ADK put there."""

    state: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])


def state_in(stored: StoredSession) -> dict[str, Any]:
    """A session's own state."""
    with understanding(stored.id):
        return msgspec.json.decode(stored.metadata, type=Held).state


class Appending:
    """One event on its way into the store. Nothing of it is written before it is known to be JSON."""

    def __init__(self, session: Session, event: Event, stale_when: StaleWhen) -> None:
        self._place = Place(session.app_name, session.user_id, session.id)
        self._session = session
        self._event = event
        self._is_strict = stale_when == "superseded"
        self._text = text_of_event(event)
        self._delta = json_scopes_of(event.actions.state_delta)
        self._moment = text_of_seconds(event.timestamp)
        self._records = tuple(new_records(self._text, event.timestamp, event.id))

    async def into(self, store: AsyncStateStore) -> Seen | None:
        """Store the event. What the object has seen then; ``None`` if it holds the event already."""
        seen = seen_by(self._session)
        if seen is not None and self._delta.is_empty and self._event.timestamp > seen.newest:
            outcomes = await committed(store, [self._change(seen.version)])
            if outcomes is not None:
                return self._after(seen, outcomes[0])
        for _ in range(MAX_ATTEMPTS):
            stored = await engine_of(store).read_session(
                self._place.id, after=seen.number if seen else None, last=None if seen else _NEWEST
            )
            if stored is None:
                raise SessionNotFoundError(f"Session {self._session.id} not found.")
            if self._is_held(seen):
                return None
            known = await self._known(store, stored, seen)
            if known is not None:
                return await self._caught_up(store, stored, seen, known)
            base = self._based_on(stored, seen)
            outcome, shared = await self._stored_on(store, stored, base)
            if outcome is not None:
                return self._after(base, outcome, shared)
        raise SessionConflict(f"session {self._place.id} changed {MAX_ATTEMPTS} times while an event was appended")

    # -- Is it there already?

    def _is_held(self, seen: Seen | None) -> bool:
        """Whether the object holds the event. A new one is newer than all that were seen, so few are looked for."""
        if seen is not None and self._event.timestamp > seen.newest:
            return False
        held = next((event for event in reversed(self._session.events) if event.id == self._event.id), None)
        if held is None:
            return False
        if text_of_event(held) != self._text:
            raise self._taken()
        return True

    async def _known(self, store: AsyncStateStore, stored: StoredSession, seen: Seen | None) -> int | None:
        """The number of the event, if it is stored although the object does not hold it."""
        if seen is None or (self._event.timestamp <= seen.newest and not seen.is_whole):
            whole = await engine_of(store).read_session(self._place.id)
            stored = stored if whole is None else whole
        number = next((seq for seq, key in stored.records.numbering.keys.items() if key == self._event.id), None)
        if number is not None:
            with understanding(stored.id):
                if from_json(dict(texts_in(stored))[number]) != from_json(self._text):
                    raise self._taken()
        return number

    def _taken(self) -> AlreadyExistsError:
        return AlreadyExistsError(f"Session {self._session.id} has another event with the id {self._event.id}.")

    async def _caught_up(self, store: AsyncStateStore, stored: StoredSession, seen: Seen | None, known: int) -> Seen:
        """What the object has seen once it holds the event that is stored already."""
        if seen is None:
            return seen_in(stored, SharedPair(Shared(), Shared()), is_whole=False)
        if stored.fields.created != seen.created or any(number != known for number, _ in self._events_in(stored)):
            return seen
        seen = _at_present(seen, stored)
        for place, _, revision, _ in self._shared(seen):
            held = await read_shared(store, place)
            if held.content.revision == revision + 1:  # nobody but this event changed it
                seen = self._with_revision(seen, place, revision)
        return seen

    # -- Is the session stale?

    def _based_on(self, stored: StoredSession, seen: Seen | None) -> Seen:
        """What the object has seen of what is stored, at its present version; raises if it is stale."""
        if seen is None:
            if self._is_outdated(stored):
                raise self._stale()
            return seen_in(stored, SharedPair(Shared(), Shared()), is_whole=False)
        if stored.fields.created != seen.created:
            raise self._stale()
        unseen = [outline for _, outline in self._events_in(stored)]
        if not unseen:
            return _at_present(seen, stored)
        if self._is_strict or self._overwrites(unseen):
            raise self._stale()
        present = _at_present(seen, stored)
        return replace(present, number=seen.number, is_whole=False)

    def _is_outdated(self, stored: StoredSession) -> bool:
        """Whether an object that does not tell what it has seen lacks the last event."""
        if self._session.last_update_time >= seconds_of(stored.fields.updated):
            return False
        events = self._events_in(stored)
        last = self._session.events[-1].id if self._session.events else None
        return (events[-1][1].id if events else None) != last

    def _overwrites(self, unseen: Sequence[Outline]) -> bool:
        """Whether the event sets a key of the session's state that somebody else set meanwhile."""
        own = {event.id for event in self._session.events}
        others = (scopes_of(one.actions.state_delta).session for one in unseen if one.id not in own)
        return any(not self._delta.session.keys().isdisjoint(state) for state in others)

    def _events_in(self, stored: StoredSession) -> list[tuple[int, Outline]]:
        """The events in what was read, in outline; of what ADK did not write, that there is something."""
        with understanding(stored.id):
            return [(number, Outline() if text is FOREIGN else outline_of(text)) for number, text in texts_in(stored)]

    def _stale(self) -> StaleSessionError:
        return StaleSessionError(
            f"Session {self._session.id} has been modified in storage since it was loaded. "
            "Please reload the session before appending more events."
        )

    # -- Storing it.

    async def _stored_on(
        self, store: AsyncStateStore, stored: StoredSession, base: Seen
    ) -> tuple[Outcome | None, list[HeldShared]]:
        """Commit the event with what it changes; no outcome if somebody was faster."""
        state = state_in(stored) | self._delta.session if self._delta.session else None
        shared = self._shared(base)
        held = await for_each(store, [place for place, *_ in shared], lambda place: read_shared(store, place))
        puts: list[PutDocument] = []
        for found, (_, delta, revision, own) in zip(held, shared, strict=True):
            if not self._is_strict and found.content.unseen(delta, revision, own):
                raise self._stale()
            puts.append(found.put(found.content.changed_by(delta)))
        change = self._change(base.version, state)
        if engine_of(store).atomic_scope == "store":
            outcomes = await committed(store, [change, *puts])
        elif (outcomes := await committed(store, [change])) is not None:
            for place, delta, _, _ in shared:  # one by one: the event, which tells them, is there first
                await change_shared(store, place, lambda state, delta=delta: state.update(delta))
        return (None if outcomes is None else outcomes[0]), held

    def _shared(self, seen: Seen) -> list[tuple[StatePlace, dict[str, Any], int, dict[str, int]]]:
        """The shared states that the event changes: where, how, and what the object has seen of them."""
        both = (
            (self._place.app_state, self._delta.app, seen.app_revision, seen.own_app),
            (self._place.user_state, self._delta.user, seen.user_revision, seen.own_user),
        )
        return [one for one in both if one[1]]

    def _change(self, version: str, state: dict[str, Any] | None = None) -> ChangeSession:
        return ChangeSession(
            id=self._place.id,
            updated=self._moment,
            requires=Requires(present=True, version=version),
            append=self._records,
            set_metadata={} if state is None else {STATE: json_text(state, "the state")},
        )

    def _after(self, base: Seen, outcome: Outcome, shared: Sequence[HeldShared] = ()) -> Seen:
        """What the object has seen once the event is stored."""
        if outcome.seqs[0] <= base.number:
            raise self._taken()
        is_next = outcome.seqs[0] == base.number + 1
        seen = replace(
            base,
            number=outcome.seqs[-1] if is_next else base.number,
            version=str(outcome.version),
            newest=max(base.newest, seconds_of(self._moment)),
        )
        for held in shared:
            seen = self._with_revision(seen, held.place, held.content.revision)
        return seen

    def _with_revision(self, seen: Seen, place: StatePlace, before: int) -> Seen:
        """Note a shared state that the event changed: as seen, if what was there before was; else as one's own keys."""
        if place == self._place.app_state:
            if before == seen.app_revision:
                return replace(seen, app_revision=before + 1)
            return replace(seen, own_app=seen.own_app | dict.fromkeys(self._delta.app, before + 1))
        if before == seen.user_revision:
            return replace(seen, user_revision=before + 1)
        return replace(seen, own_user=seen.own_user | dict.fromkeys(self._delta.user, before + 1))


def _at_present(seen: Seen, stored: StoredSession) -> Seen:
    """The same, and all that is stored now."""
    return replace(
        seen,
        number=stored.next_seq - 1,
        version=str(stored.version),
        newest=seconds_of(stored.fields.updated),
    )
