"""Rules of the state machine that need no session object: append, rewind, fork, prune, documents, batches, opening."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Literal

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from statestore.conformance.changes import BOB, agent, appended, created, event, put, user
from statestore.conformance.double import Double
from statestore.conformance.oracle import Kept, Refused, Wish
from statestore.conformance.session_rules import fates, ids, keys, kinds, moments, slots, texts, users
from statestore.conformance.trial import CATEGORY, Trial, new_record, present, told_of
from statestore.engine import (
    Change,
    DeleteDocument,
    DeleteSession,
    DocumentQuery,
    NewRecord,
    PreconditionFailed,
    Requires,
)
from statestore.errors import DocumentConflict, InvalidValue
from statestore.pruning import PruneConfig
from statestore.session import Session
from statestore.stored import SessionSummary
from statestore.timeline import TimelineEntry

names: Final = st.sampled_from(["d1", "d2", "é.3"])
viewers: Final = st.sampled_from([None, None, "alice", "bob"])
seqs: Final = st.integers(0, 8)
needs: Final = st.sampled_from(["", "", "absent", "present", "version", "old version", "owner", "other owner"])
wishes: Final = st.tuples(st.sampled_from(["put", "drop", "begin", "note", "end"]), ids, needs, users)
YEAR: Final = 24 * 365
MOMENT: Final = datetime(2024, 5, 5, 5, 5, 5, 5, tzinfo=UTC)


class StoreRules(Trial):
    """What people do with a store."""

    def view(self, viewer: str | None) -> Any:
        """The store, or one user's part of it."""
        return self.bench.store if viewer is None else self.bench.store.for_user(viewer)

    @rule(session_id=ids, kind=kinds, text=texts, key=keys, moment=st.none() | moments, viewer=viewers, fate=fates)
    def append(
        self, session_id: str, kind: str, text: str, key: str | None, moment: Any, viewer: str | None, fate: str
    ) -> None:
        """Add two records without loading the session, one with a key; then some with numbers of their own."""
        self.run(self._append(session_id, kind, text, key, moment, viewer))
        if moment is not None and session_id in self.oracle.sessions:
            for gap in (-1, 3):
                self.run(self._append_numbered(self.oracle.sessions[session_id], kind, f"{key}{gap}", gap))
        self.meet(fate)

    async def _append(
        self, session_id: str, kind: str, text: str, key: str | None, moment: datetime | None, viewer: str | None
    ) -> None:
        earliest = present()
        records = [new_record(kind, text, moment), new_record("user", "more", moment)]
        seqs, error = await self.outcome(self.view(viewer).append(session_id, *records, keys=[key, None]))
        kept = self.expect(error, lambda: self.oracle.find(session_id, viewer))
        if kept is not None:
            told = [told_of(records[0], key), told_of(records[1])]
            assert seqs == self.oracle.append(kept, told)
            await self.settle(kept, earliest, *(record.timestamp_text for record in records))

    async def _append_numbered(self, kept: Kept, kind: str, key: str, gap: int) -> None:
        """Add a record with a number of its own, free or taken, and one that goes on from there."""
        at = "2024-05-05T05:05:05.000005Z"
        told = [told_of(new_record(kind, "numbered", MOMENT), key), told_of(new_record("user", "more", MOMENT))]
        told[0].seq = kept.next_seq + gap
        makers = {"user": user, "agent": agent}
        make = makers.get(kind) or partial(event, kind)
        records = [make("numbered", at, key=key, seq=told[0].seq), user("more", at)]
        if kept.refuses(told[0]):
            with pytest.raises(InvalidValue):
                await self.bench.engine.commit([appended(kept.id, *records, at=at)])
        else:
            (outcome,) = await self.bench.engine.commit([appended(kept.id, *records, at=at)])
            assert list(outcome.seqs) == self.oracle.append(kept, told)
            kept.touch(at)
            self.oracle.advance(kept, str(outcome.version))

    @rule(session_id=ids, to=seqs, viewer=viewers)
    def rewind(self, session_id: str, to: int, viewer: str | None) -> None:
        """Drop the tail of a session."""
        self.run(self._rewind(session_id, to, viewer))

    async def _rewind(self, session_id: str, to: int, viewer: str | None) -> None:
        earliest = present()
        removed, error = await self.outcome(self.view(viewer).rewind_session(session_id, to=to))
        kept = self.expect(error, lambda: self.oracle.find(session_id, viewer))
        if kept is not None:
            dropped = self.oracle.rewind(kept, to)
            assert _seqs_of(removed) == dropped
            if dropped:
                await self.settle(kept, earliest)

    @rule(session_id=ids, new_id=ids, at=st.none() | seqs, slot=slots, viewer=viewers)
    def fork(self, session_id: str, new_id: str, at: int | None, slot: int, viewer: str | None) -> None:
        """Copy a session up to a point."""
        self.run(self._fork(session_id, new_id, at, slot, viewer))

    async def _fork(self, session_id: str, new_id: str, at: int | None, slot: int, viewer: str | None) -> None:
        earliest = present()
        session, error = await self.outcome(self.view(viewer).fork_session(session_id, at=at, new_id=new_id))
        forked = self.expect(error, lambda: self.oracle.fork(self.oracle.find(session_id, viewer), new_id, at))
        if forked is not None and session is not None:
            forked.updated = earliest
            await self.settle(forked, earliest)
            self.held[slot] = session, Double.of(forked)

    @rule(how=st.sampled_from(["prune", "prune", "delete", "erase"]), session_id=ids, user_id=users, viewer=viewers)
    def remove(self, how: str, session_id: str, user_id: str, viewer: str | None) -> None:
        """Sessions go: the old and the many, a certain one, or all of a user's."""
        if how == "prune":
            self._prune(PruneConfig(0, 20 * YEAR), "2000-01-01T00:00:00Z", viewer)
            self._prune(PruneConfig(2, 0, max_sessions_per_user=1 if user_id == BOB else 0), "0001-01-01T", viewer)
        elif how == "delete":
            self._delete(session_id, viewer)
        else:
            doomed = [kept.id for kept in self.oracle.listed(user_id)]
            assert self.run(self.bench.store.erase_user(user_id)) == len(doomed)
            for doomed_id in doomed:
                del self.oracle.sessions[doomed_id]

    def _prune(self, config: PruneConfig, oldest: str, viewer: str | None) -> None:
        doomed = self.run(self.view(viewer).prune_sessions(config, dry_run=True))
        before = set(self.oracle.sessions)
        expected = self.oracle.prune(config.max_sessions, config.max_sessions_per_user, oldest, viewer)
        assert {item.session.id for item in doomed} == before - set(self.oracle.sessions)
        assert self.run(self.view(viewer).prune_sessions(config)) == expected

    def _delete(self, session_id: str, viewer: str | None) -> None:
        is_deleted = self.run(self.view(viewer).delete_session(session_id))
        try:
            self.oracle.find(session_id, viewer)
        except Refused:
            assert is_deleted is False
        else:
            assert is_deleted is True
            del self.oracle.sessions[session_id]

    @rule(name=names, value=st.integers(0, 3), needs=st.sampled_from(["", "", "absent", "version", "old version"]))
    def put(self, name: str, value: int, needs: str) -> None:
        """Write a document, perhaps over a certain version only."""
        self.run(self._put(name, value, needs))

    async def _put(self, name: str, value: int, needs: str) -> None:
        wish = self._wish("put", name, needs, "")
        if_version = "" if wish.absent else wish.version
        try:
            version = await self.bench.store.save_json(CATEGORY, name, value, if_version=if_version)
        except DocumentConflict:
            assert self.oracle.objections([wish])
        else:
            assert not self.oracle.objections([wish])
            self.oracle.put(name, str(value).encode(), version)

    @rule(name=names, is_all=st.booleans())
    def drop(self, name: str, is_all: bool) -> None:
        """Delete a document that may not be there, or all of them."""
        if is_all:
            assert self.run(self.bench.store.delete_category(CATEGORY)) == len(self.oracle.documents)
            self.oracle.documents.clear()
        else:
            is_deleted = self.run(self.bench.store.delete_file(CATEGORY, name))
            assert is_deleted == (self.oracle.documents.pop(name, None) is not None)

    @rule(batch=st.lists(wishes, min_size=1, max_size=5), fate=fates)
    def commit(self, batch: list[tuple[Any, str, str, str]], fate: str) -> None:
        """Commit several changes with preconditions, of which some may not hold: all happen or none."""
        chosen = {
            ("doc" if what in ("put", "drop") else "session", name): (what, name, *rest) for what, name, *rest in batch
        }
        self.run(self._commit([self._wish(*wish) for wish in chosen.values()]))
        self.meet(fate)

    async def _commit(self, batch: list[Wish]) -> None:
        changes = [_change(wish) for wish in batch]
        if not self.bench.spans and len(batch) > 1:
            await self.bench.assert_refused(changes)
            return
        objections = self.oracle.objections(batch)
        try:
            outcomes = await self.bench.engine.commit(changes)
        except PreconditionFailed as failed:
            found = [(failure.index, failure.reason) for failure in failed.failures]
        else:
            found = []
            for wish, outcome in zip(batch, outcomes, strict=True):
                self.oracle.grant(wish, None if outcome.version is None else str(outcome.version))
        assert found == objections

    def _wish(self, what: Any, name: str, needs: str, user_id: str) -> Wish:
        """A change, with a precondition that holds, or does not, as things are now."""
        wish = Wish(what, name, b"7", user_id, absent=needs == "absent", present=needs == "present")
        if what in ("put", "drop"):
            version = self.oracle.documents.get(name, (b"", None))[1]
            owner = None
        else:
            kept = self.oracle.sessions.get(name)
            version, owner = (kept.version, kept.user_id) if kept else (None, user_id)
            wish.value = told_of(new_record("tool", "noted", MOMENT), "k1")
        if needs in ("version", "old version"):
            wish.version = f"{version or 'none'}{needs.removesuffix('version')}"
        elif needs in ("owner", "other owner") and owner is not None:
            wish.owner = owner if needs == "owner" else f"not {owner}"
        return wish

    @rule(slot=slots, name=names)
    def save_with_document(self, slot: int, name: str) -> None:
        """Save an object and a document together, in a block."""
        if slot in self.held and self.bench.spans:
            self.run(self._save_with_document(slot, name))

    async def _save_with_document(self, slot: int, name: str) -> None:
        session, double = self.held[slot]
        _, error = await self.outcome(self._in_a_block(session, name))
        version = await self.version_of(str(session.id))
        self.expect(error, lambda: double.save(self.oracle, session.updated_text, version))
        double.updated = session.updated_text
        if error is None:
            document = await self.bench.engine.get_document(CATEGORY, name, "json")
            assert document is not None
            self.oracle.put(name, b"9", document.version)

    async def _in_a_block(self, session: Session, name: str) -> None:
        async with self.bench.store.batch() as batch:
            batch.save_session(session)
            batch.save_json(CATEGORY, name, 9)

    @rule(size=st.integers(1, 3), order=st.sampled_from(["updated", "id"]), user_id=st.none() | users, viewer=viewers)
    def page(self, size: int, order: Literal["updated", "id"], user_id: str | None, viewer: str | None) -> None:
        """List in pages, sessions and documents."""
        self.run(self._page(size, order, user_id, viewer))
        for kind in ("bin", "json", "md"):
            query = DocumentQuery(CATEGORY, after=("d1", kind), limit=size)
            found = [info.name for info in self.run(self.bench.engine.list_documents(query))]
            assert found == [name for name in sorted(self.oracle.documents) if (name, "json") > ("d1", kind)][:size]

    async def _page(self, size: int, order: str, user_id: str | None, viewer: str | None) -> None:
        found: list[SessionSummary] = []
        view = self.view(viewer)
        after = None
        while page := await view.list_sessions(user_id=user_id, order=order, limit=size, after=after):
            found += page
            after = page[-1].cursor
        hidden = None not in (user_id, viewer) and user_id != viewer
        self.assert_lists(found, [] if hidden else self.oracle.listed(user_id or viewer, by_id=order == "id"))

    @rule(project_id=st.sampled_from(["p", "q", "a", "b"]), top_level=st.booleans())
    def filter(self, project_id: str, top_level: bool) -> None:
        """List a selection."""
        found = self.run(self.bench.store.list_sessions(project_id=project_id, top_level=top_level))
        expected = self.oracle.listed(project_id=project_id, top_level=top_level)
        self.assert_lists(found, expected)
        count = self.run(self.bench.store.count_sessions(project_id=project_id, top_level=top_level))
        assert count == len(expected)

    @precondition(lambda self: self.bench.reopens)
    @rule()
    def reopen(self) -> None:
        """Close the store and open it again. Nothing is ever wrong with it."""
        self.run(self.bench.reopen())
        assert self.run(self.bench.engine.check()) == []


def _change(wish: Wish) -> Change:
    requires = Requires(absent=wish.absent, present=wish.present, version=wish.version, owner=wish.owner)
    match wish.what:
        case "put":
            return put(wish.name, wish.value, requires)
        case "drop":
            return DeleteDocument(CATEGORY, wish.name, "json", requires)
        case "end":
            return DeleteSession(wish.name, requires)
        case "begin":
            record = _noted(wish)
            return created(wish.name, record, user_id=wish.user_id, at=wish.value.body["timestamp"], requires=requires)
        case "note":
            return appended(wish.name, _noted(wish), at=wish.value.body["timestamp"], requires=requires)


def _seqs_of(entries: list[TimelineEntry] | None) -> list[int | None]:
    return [entry.seq for entry in entries or ()]


def _noted(wish: Wish) -> NewRecord:
    return event(wish.value.kind, wish.value.body["data"], wish.value.body["timestamp"], key=wish.value.key)
