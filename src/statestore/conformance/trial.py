"""A store under trial beside its oracle: what each step of the state machine is made with, and the comparison."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB
from statestore.conformance.contract import Contract
from statestore.conformance.double import Double
from statestore.conformance.faces import FaceName, face_named
from statestore.conformance.oracle import Kept, Oracle, Refused, Told, instant, is_same
from statestore.engine import DocumentQuery, SessionQuery
from statestore.errors import SessionConflict, SessionNotFound, StateStoreError, WrongUser
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.session import Session
from statestore.stored import OPTIONAL_FIELDS, SessionSummary, StoredNotice

T = TypeVar("T")
ERRORS: Final = {"missing": SessionNotFound, "conflict": SessionConflict, "wrong user": WrongUser}
CATEGORY: Final = "notes"
WORDS: Final = ("more", "p", "東", "hello")
VIEWERS: Final = (None, ALICE, BOB)


class Trial(RuleBasedStateMachine):
    """One history: a store, its oracle, and a few session objects with their doubles."""

    contract: ClassVar[Contract]
    face_name: ClassVar[FaceName]
    places: ClassVar[Iterator[Path]]

    def __init__(self) -> None:
        super().__init__()
        self.oracle = Oracle()
        self.held: dict[int, tuple[Session, Double]] = {}
        self._face = face_named(self.face_name)
        self.bench = Bench(self.contract, self._face, next(self.places))
        self.replica: dict[str, dict[int, Told]] = {}
        self._cursor = ""
        self._searches = 0
        try:
            self.run(self.bench.start())
            if self.bench.offers("watch"):
                self._cursor = self.run(self.bench.watching.change_cursor())
        except BaseException:
            self._face.close()
            raise

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in this trial's face."""
        return self._face.run(work)

    def teardown(self) -> None:
        """Close the store, and remove what it left on the disk."""
        try:
            self.run(self.bench.stop())
        finally:
            self._face.close()
            shutil.rmtree(self.bench.place, ignore_errors=True)

    def meet(self, fate: str) -> None:
        """What happens right after a write: nothing, or a crash. What keeps nothing is spared."""
        if fate == "crash":
            self.run(self.bench.crash())

    async def outcome(self, call: Coroutine[Any, Any, T]) -> tuple[T | None, StateStoreError | None]:
        """What a call gives back, or the error that tells of somebody else's doing."""
        try:
            return await call, None
        except (SessionNotFound, SessionConflict, WrongUser) as error:
            return None, error

    def expect(self, error: StateStoreError | None, expectation: Callable[[], T]) -> T | None:
        """What the oracle says; where it refuses, the store must have refused for the same reason."""
        reason = None
        expected = None
        try:
            expected = expectation()
        except Refused as refused:
            reason = str(refused)
        if reason is not None:
            assert type(error) is ERRORS[reason], f"should have been refused ({reason}), not {error!r}"
        elif error is not None:
            raise error
        return expected

    async def version_of(self, session_id: str) -> str | None:
        """The version that a session has now."""
        stored = await self.bench.engine.read_session(session_id, last=0)
        return None if stored is None else str(stored.version)

    async def settle(self, kept: Kept, earliest: str, *moments: str) -> None:
        """A session was changed without our knowing the exact moment: take it over, if it can be true."""
        stored = await self.bench.engine.read_session(kept.id, last=0)
        assert stored is not None
        known = [kept.updated, *moments]
        now = stored.fields.updated
        assert max(map(instant, [*known, earliest])) <= instant(now) <= max(map(instant, [*known, present()]))
        if not kept.created:
            assert instant(earliest) <= instant(stored.fields.created) <= instant(present())
            kept.created = stored.fields.created
        kept.updated = now
        self.oracle.advance(kept, str(stored.version))

    @invariant()
    def store_and_oracle_agree(self) -> None:
        """Everything that is stored is what the oracle says, and nothing else."""
        self.run(self._compare())

    async def _compare(self) -> None:
        engine = self.bench.engine
        for kept in self.oracle.sessions.values():
            stored = await engine.read_session(kept.id)
            assert stored is not None, f"session {kept.id} is gone"
            found = [
                Told(record.kind, json.loads(record.body), record.key, record.seq)
                for record in stored.records.in_order()
            ]
            assert found == kept.records
            assert stored.next_seq == kept.next_seq
            assert stored.message_count == sum(record.kind == "user" for record in kept.records)
            assert is_same(json.loads(stored.metadata), kept.metadata), "the same JSON in the same order"
            moments = (stored.fields.user_id, stored.fields.created, stored.fields.updated)
            assert moments == (kept.user_id, kept.created, kept.updated)
            assert {name: getattr(stored.fields, name) for name in OPTIONAL_FIELDS} == kept.fields
            assert str(stored.version) == kept.version, f"the version of {kept.id} changed by itself"
        self.assert_lists(await engine.list_sessions(SessionQuery()), self.oracle.listed())
        infos = await engine.list_documents(DocumentQuery(CATEGORY))
        assert [info.name for info in infos] == sorted(self.oracle.documents)
        for name, (body, version) in self.oracle.documents.items():
            document = await engine.get_document(CATEGORY, name, "json")
            assert document is not None
            assert (document.body, document.version) == (body, version)
        assert await engine.list_categories() == ([CATEGORY] if self.oracle.documents else [])

        if self.bench.offers("watch"):
            await self._catch_up()
            assert {name: list(told.values()) for name, told in self.replica.items()} == {
                kept.id: [replace(record, key=None) for record in kept.records]
                for kept in self.oracle.sessions.values()
            }, "who is told what happens knows what is stored"

        if self.bench.offers("search"):
            await self._search()

    async def _search(self) -> None:
        """Look for another word each time, with other eyes."""
        word, viewer = WORDS[self._searches % len(WORDS)], VIEWERS[self._searches % len(VIEWERS)]
        self._searches += 1
        store = self.bench.store if viewer is None else self.bench.store.for_user(viewer)
        hits = await store.search_sessions(word, limit=1000)
        assert sorted((hit.session_id, hit.seq or 0) for hit in hits) == self.oracle.found(word, viewer)

    async def _catch_up(self) -> None:
        """Do to the replica whatever a watcher is told since the last time."""
        while True:
            page = await self.bench.watching.read_changes(self._cursor, limit=3)
            for notice in page.notices:
                self._replay(notice)
            if page.cursor == self._cursor:
                return
            self._cursor = page.cursor

    def _replay(self, notice: StoredNotice) -> None:
        if notice.what == "deleted":
            self.replica.pop(notice.session_id, None)
            return
        told = self.replica.setdefault(notice.session_id, {})
        if notice.what == "rewound":
            for seq in [seq for seq in told if seq > (notice.seq or 0)]:
                del told[seq]
        elif notice.record is not None:
            record = notice.record
            assert record.seq == notice.seq
            assert record.seq > max(told, default=0), "once, and in order"
            told[record.seq] = Told(record.kind, json.loads(record.body), None, record.seq)

    def assert_lists(self, found: list[SessionSummary], expected: list[Kept]) -> None:
        """A listing shows exactly these sessions, as they are."""
        assert [shown(summary) for summary in found] == [expected_summary(kept) for kept in expected]


def shown(summary: SessionSummary) -> dict[str, Any]:
    """What a summary tells, but for the size."""
    names = ("id", "user_id", "message_count", "response_count", "event_count", "created_text", "updated_text")
    more = ("active_seed_id", "active_persona_id", "project_id", "parent_session_id", "title", "version")
    return {name: getattr(summary, name) for name in (*names, *more)}


def expected_summary(kept: Kept) -> dict[str, Any]:
    """What a summary must tell."""
    counts = {"user": 0, "agent": 0, "event": 0}
    for record in kept.records:
        counts[record.kind if record.kind in counts else "event"] += 1
    return kept.fields | {
        "id": kept.id,
        "user_id": kept.user_id,
        "message_count": counts["user"],
        "response_count": counts["agent"],
        "event_count": counts["event"],
        "created_text": kept.created,
        "updated_text": kept.updated,
        "project_id": kept.project,
        "title": kept.title,
        "version": kept.version,
    }


def told_of(record: Record, key: str | None = None) -> Told:
    """A record as the oracle knows it."""
    if isinstance(record, UserMessage):
        return Told("user", {"content": record.content, "timestamp": record.timestamp_text}, key)
    if isinstance(record, AgentResponse):
        names = ("content", "session_id", "seed_id", "phase_reached", "evaluation_passed")
        body = {name: getattr(record, name) for name in names} | {"timestamp": record.timestamp_text}
        return Told("agent", body, key)
    return Told(record.kind, {"kind": record.kind, "data": record.data, "timestamp": record.timestamp_text}, key)


def new_record(kind: str, text: str, timestamp: datetime | None = None) -> Record:
    """A record of any kind."""
    if kind == "user":
        return UserMessage(text, timestamp=timestamp)
    if kind == "agent":
        return AgentResponse(text, timestamp=timestamp)
    return Event(kind, text, timestamp=timestamp)


def present() -> str:
    """The present moment."""
    return datetime.now(UTC).isoformat().removesuffix("+00:00") + "Z"
