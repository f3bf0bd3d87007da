"""Rules of the state machine that are about session objects: load, change, save, and all that can come between."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from statestore.conformance.changes import ALICE, BOB
from statestore.conformance.double import Double
from statestore.conformance.trial import Trial, new_record, told_of
from statestore.session import Session
from statestore.stored import OPTIONAL_FIELDS

ids: Final = st.sampled_from(["s1", "s1", "s1", "s2", "é 3"])
fates: Final = st.sampled_from(["", "", "", "crash"])
users: Final = st.sampled_from([ALICE, BOB])
slots: Final = st.integers(0, 2)
kinds: Final = st.sampled_from(["user", "agent", "tool"])
texts: Final = st.sampled_from(["hello", "", "two\nlines", "東京 \U0001f600"])
keys: Final = st.sampled_from([None, "k1", "k1", "k2"])
values: Final[st.SearchStrategy[Any]] = st.sampled_from(["p", "", "p,q", ["q", "p"], [], 5, 1.0, None, {"a": [1]}])
metadata_keys: Final = st.sampled_from(["title", "project_id", "project_ids", "n"])
moments: Final = st.sampled_from(
    [
        datetime(1990, 1, 1, tzinfo=UTC),
        datetime(2024, 5, 5, 5, 5, 5, 123456, tzinfo=UTC),
        datetime(2024, 5, 5, 5, 5, 5, 123457, tzinfo=UTC),
        datetime(2090, 1, 1, tzinfo=UTC),
    ]
)


class SessionRules(Trial):
    """What people do with session objects."""

    @initialize()
    def begin(self) -> None:
        """Most histories begin with a conversation that two people hold."""
        self.get_or_create(0, "s1", ALICE)
        for kind, text in (("user", "one"), ("tool", "two"), ("agent", "three"), ("user", "four")):
            self.say(0, kind, text, None, is_saved=kind == "user")
        self.save(0, recreate=False, fate="")
        self.load(1, "s1", None)

    @rule(slot=slots, session_id=ids, user_id=users)
    def make(self, slot: int, session_id: str, user_id: str) -> None:
        """A new object, whose id may be taken, saved at once or later."""
        session = Session.with_id(user_id, session_id)
        self.held[slot] = session, Double(session_id, user_id, session.created_text, session.updated_text)

    @rule(slot=slots, session_id=ids, last=st.sampled_from([None, None, None, 0, 1, 3]))
    def load(self, slot: int, session_id: str, last: int | None) -> None:
        """Load a session, or its newest part."""
        session = self.run(self.bench.store.load_session(session_id, last=last))
        kept = self.oracle.sessions.get(session_id)
        assert (session is None) == (kept is None)
        if session is not None and kept is not None:
            self._hold(slot, session, Double.of(kept, last))

    @rule(slot=slots, session_id=ids, user_id=users)
    def get_or_create(self, slot: int, session_id: str, user_id: str) -> None:
        """The session with an id, created if there is none, refused if it is another's."""
        self.run(self._get_or_create(slot, session_id, user_id))

    async def _get_or_create(self, slot: int, session_id: str, user_id: str) -> None:
        session, error = await self.outcome(self.bench.store.get_or_create_session(user_id, session_id))
        kept = self.oracle.sessions.get(session_id)
        if session is not None and kept is None:
            double = Double(session_id, user_id, session.created_text, session.updated_text)
            double.save(self.oracle, session.updated_text, await self.version_of(session_id))
        else:
            assert kept is not None
            assert (session is None) == (kept.user_id != user_id), repr(error)
            double = Double.of(kept)
        if session is not None:
            self._hold(slot, session, double)

    def _hold(self, slot: int, session: Session, double: Double) -> None:
        self.held[slot] = session, double
        found = [(entry.seq, told_of(entry.record)) for entry in session.timeline]
        assert [(seq, told.kind, told.body) for seq, told in found] == [
            (told.seq, told.kind, told.body) for told in double.told
        ]
        assert list(session.metadata.items()) == list(double.metadata.items())

    @precondition(lambda self: self.held)
    @rule(slot=slots, kind=kinds, text=texts, key=keys, is_saved=st.booleans())
    def say(self, slot: int, kind: str, text: str, key: str | None, is_saved: bool) -> None:
        """Add a record to an object, and perhaps save it."""
        session, double = self._pick(slot)
        if kind == "user":
            record = session.add_user_message(text, key=key)
        elif kind == "agent":
            record = session.add_agent_response(text, key=key)
        else:
            record = session.add_event(kind, text, key=key)
        double.told.append(told_of(record, key))
        if is_saved:
            self.run(self._save(session, double))

    @precondition(lambda self: self.held)
    @rule(slot=slots, name=st.sampled_from(OPTIONAL_FIELDS), value=st.sampled_from([None, "a", "b"]))
    def set_field(self, slot: int, name: str, value: str | None) -> None:
        """Set or unset a field of an object."""
        session, double = self._pick(slot)
        setattr(session, name, value)
        double.fields[name] = value

    @precondition(lambda self: self.held)
    @rule(slot=slots, key=metadata_keys, value=values, is_unset=st.sampled_from([False, False, True]))
    def set_metadata(self, slot: int, key: str, value: Any, is_unset: bool) -> None:
        """Set or unset a metadata key of an object, and save it."""
        session, double = self._pick(slot)
        if is_unset:
            session.metadata.pop(key, None)
            double.metadata.pop(key, None)
        else:
            session.set_metadata(key, value)
            double.metadata[key] = value
        self.run(self._save(session, double))

    @precondition(lambda self: self.held)
    @rule(slot=slots, moment=moments, is_saved=st.booleans())
    def set_moment(self, slot: int, moment: datetime, is_saved: bool) -> None:
        """Give an object another moment of change, earlier ones included, and perhaps save it."""
        session, double = self._pick(slot)
        session.updated_at = moment
        if is_saved:
            self.run(self._save(session, double))

    @precondition(lambda self: any(double.editable() for _, double in self.held.values()))
    @rule(slot=slots, place=st.integers(0, 5), text=st.sampled_from([None, "edited"]))
    def edit(self, slot: int, place: int, text: str | None) -> None:
        """Remove or replace a stored record in an object."""
        session, double = self._pick(slot)
        places = double.editable()
        if not places or (text is not None and double.is_rewriting):
            return
        place = places[place % len(places)]
        told = double.told[place]
        column = _column_of(told.kind)
        index = sum(_column_of(other.kind) == column for other in double.told[:place])
        if text is None:
            double.remove(place)
            _lists(session)[column].pop(index)
        else:
            record = new_record(told.kind, text)
            double.replace(place, told_of(record))
            _lists(session)[column][index] = record

    @precondition(lambda self: self.held)
    @rule(slot=slots, recreate=st.booleans(), fate=fates)
    def save(self, slot: int, recreate: bool, fate: str) -> None:
        """Save an object: new, changed, stale, edited, or of a session that is gone."""
        session, double = self._pick(slot)
        self.run(self._save(session, double, recreate=recreate and double.is_straight and not double.is_replaced))
        self.meet(fate)

    async def _save(self, session: Session, double: Double, *, recreate: bool = False) -> None:
        _, error = await self.outcome(self.bench.store.save_session(session, recreate=recreate))
        version = await self.version_of(str(session.id))
        self.expect(error, lambda: double.save(self.oracle, session.updated_text, version, recreate=recreate))
        double.updated = session.updated_text

    @rule(session_id=ids)
    def update_with(self, session_id: str) -> None:
        """Read, change and write a session in one go."""
        self.run(self._update_with(session_id))

    async def _update_with(self, session_id: str) -> None:
        def change(session: Session) -> None:
            count = session.metadata.get("n")
            session.set_metadata("n", count + 1 if type(count) is int else 1)

        session, error = await self.outcome(self.bench.store.update_session_with(session_id, change))
        version = await self.version_of(session_id)

        def expectation() -> None:
            double = Double.of(self.oracle.find(session_id))
            count = double.metadata.get("n")
            double.metadata["n"] = count + 1 if type(count) is int else 1
            double.save(self.oracle, session.updated_text if session else "", version)

        self.expect(error, expectation)

    def _pick(self, slot: int) -> tuple[Session, Double]:
        """The object in a slot, or in the next one that holds any."""
        slot = min(self.held, key=lambda other: (other - slot) % 3)
        return self.held[slot]


def _column_of(kind: str) -> int:
    return {"user": 0, "agent": 1}.get(kind, 2)


def _lists(session: Session) -> tuple[list[Any], ...]:
    return session.user_messages, session.agent_responses, session.events
