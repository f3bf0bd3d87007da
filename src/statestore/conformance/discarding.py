"""The trash: what was thrown away can be had back, whole, and only by those whose it is."""

from __future__ import annotations

from typing import Any

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    ALICE,
    BOB,
    agent,
    appended,
    created,
    event,
    everything_in,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.errors import InvalidName, InvalidValue, SessionConflict, SessionNotFound
from statestore.names import TRASH
from statestore.pruning import PruneConfig
from statestore.stored import StoredSession

HUGE = 10**30


class TrashCases(Contract):
    """Throwing away, and getting back."""

    @case
    async def test_what_is_restored_is_what_was_thrown_away(self, bench: Bench) -> None:
        """Records with their text, numbers and keys, fields, metadata, moments: all but the version."""
        await bench.commit(
            created(
                "s",
                user("one", key="k"),
                agent("two"),
                event("tool", {"n": 1e16}),
                user("gone"),
                fields={"project_id": "p"},
                metadata={"b": b"-0.0", "a": b'"\\u0000"'},
            )
        )
        await bench.commit(truncated("s", 3))
        before = await session_of(bench.engine, "s")
        assert await bench.store.delete_session("s", trash_hours=1) is True
        assert await bench.store.load_session("s") is None
        assert await bench.store.list_sessions() == []
        (trashed,) = await bench.store.list_trash()
        assert (trashed.session.id, trashed.session.user_id, trashed.session.title) == ("s", ALICE, "one")
        assert (trashed.until - trashed.deleted_at).total_seconds() == 3600
        await bench.reopen()
        session = await bench.store.restore_session("s")
        assert [message.content for message in session.user_messages] == ["one"]
        assert _contents(await session_of(bench.engine, "s")) == _contents(before)
        assert await bench.store.list_trash() == []
        (outcome,) = await bench.commit(appended("s", user("again", key="k"), user("five")))
        assert outcome.seqs == (1, 5)
        assert await bench.engine.check() == []

    @case
    async def test_the_trash_is_nobodys_category(self, bench: Bench) -> None:
        """It is not listed among the documents, and cannot be read, written or deleted as one of them."""
        await bench.commit(created("s", user("one")))
        await bench.store.delete_session("s", trash_hours=1)
        assert await bench.store.list_categories() == []
        assert await bench.store.check() == []
        for attempt in (
            lambda: bench.store.list_documents(TRASH),
            lambda: bench.store.delete_category(TRASH),
            lambda: bench.store.save_bytes(TRASH, "n", b""),
        ):
            with pytest.raises(InvalidName):
                await attempt()
        assert len(await bench.store.list_trash()) == 1

    @case
    async def test_a_restore_takes_no_other_sessions_place(self, bench: Bench) -> None:
        """A new session may take a trashed id; then restore raises, and both stay as they are."""
        await bench.commit(created("s", user("old")))
        await bench.store.delete_session("s", trash_hours=1)
        await bench.commit(created("s", user("new")))
        before = await everything_in(bench.engine)
        with pytest.raises(SessionConflict):
            await bench.store.restore_session("s")
        assert await everything_in(bench.engine) == before
        await bench.store.delete_session("s", trash_hours=2)
        restored = await bench.store.restore_session("s")
        assert [message.content for message in restored.user_messages] == ["new"]
        assert [trashed.session.title for trashed in await bench.store.list_trash()] == ["old"]

    @case
    async def test_only_what_is_there_can_be_thrown_away_or_restored(self, bench: Bench) -> None:
        """Deleting what is not there is no error; restoring it is one. A number of hours is a whole number."""
        await bench.commit(created("other", user("stays")))
        assert await bench.store.delete_session("s", trash_hours=1) is False
        with pytest.raises(SessionNotFound):
            await bench.store.restore_session("s")
        hours: Any
        for hours in (-1, 1.5, True, None, "1"):
            with pytest.raises(InvalidValue):
                await bench.store.delete_session("other", trash_hours=hours)
        assert await bench.store.list_trash() == []
        assert [summary.id for summary in await bench.store.list_sessions()] == ["other"]

    @case
    async def test_a_prune_throws_away_what_it_is_told_to_keep_for_a_while(self, bench: Bench) -> None:
        """With hours, what goes can be restored; without, it is gone."""
        for number in range(5):
            await bench.commit(created(f"s{number}", user(f"m{number}"), at=number))
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=3, ttl_hours=0, trash_hours=HUGE)) == 2
        assert {trashed.session.id for trashed in await bench.store.list_trash()} == {"s0", "s1"}
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 2
        assert {trashed.session.id for trashed in await bench.store.list_trash()} == {"s0", "s1"}
        await bench.store.restore_session("s0")
        assert sorted(summary.id for summary in await bench.store.list_sessions()) == ["s0", "s4"]
        assert await bench.store.empty_trash() == 1
        assert await bench.store.list_trash() == []
        assert len(await bench.store.list_sessions()) == 2

    @case
    async def test_users_have_their_own_trash(self, bench: Bench) -> None:
        """Nobody sees, restores or empties another's; erasing a user erases that user's trash."""
        for session_id, user_id in (("a", ALICE), ("b", BOB)):
            await bench.commit(created(session_id, user("hello"), user_id=user_id))
            await bench.store.delete_session(session_id, trash_hours=1)
        alice = bench.store.for_user(ALICE)
        assert [trashed.session.id for trashed in await alice.list_trash()] == ["a"]
        with pytest.raises(SessionNotFound):
            await alice.restore_session("b")
        assert await bench.store.erase_user(BOB) == 1
        assert [trashed.session.id for trashed in await bench.store.list_trash()] == ["a"]
        assert (await alice.restore_session("a")).user_id == ALICE
        assert await alice.delete_session("a", trash_hours=1)
        assert await alice.empty_trash() == 1
        assert await bench.engine.list_categories() == []

    @case
    async def test_what_was_erased_meanwhile_is_not_restored(self, bench: Bench) -> None:
        """A restore that is overtaken by emptying the trash, or by another restore, brings nothing back."""
        await bench.commit(created("other", user("stays"), user_id=BOB))
        attempts = (
            lambda: bench.store.erase_user(ALICE),
            lambda: bench.store.empty_trash(),
            lambda: self._restored_and_deleted(bench),
        )
        for meanwhile in attempts if bench.spans else ():  # where a batch is one item, what was read is stored
            await bench.commit(created("s", user("one")))
            await bench.store.delete_session("s", trash_hours=1)
            with pytest.raises(SessionNotFound):
                await bench.interrupted(meanwhile).restore_session("s")
            assert await bench.store.load_session("s") is None
            assert await bench.store.list_trash() == []
        assert [summary.id for summary in await bench.store.list_sessions()] == ["other"]

    @staticmethod
    async def _restored_and_deleted(bench: Bench) -> None:
        await bench.store.restore_session("s")
        await bench.store.delete_session("s")

    @case
    async def test_what_was_written_meanwhile_is_thrown_away_with_it(self, bench: Bench) -> None:
        """A session that changes while it is deleted goes as it is then; in a prune it stays."""
        await bench.commit(created("s", user("one"), at=0), created("t", user("new"), at=50))
        raced = bench.interrupted(lambda: bench.engine.commit([appended("s", user("two"))]))
        assert await raced.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0, trash_hours=1)) == 0
        assert await bench.store.list_trash() == []
        raced = bench.interrupted(lambda: bench.engine.commit([appended("s", user("three"))]))
        assert await raced.delete_session("s", trash_hours=1)
        restored = await bench.store.restore_session("s")
        assert [message.content for message in restored.user_messages] == ["one", "two", "three"]


def _contents(stored: StoredSession) -> tuple[Any, ...]:
    """Everything but the version."""
    return (stored.fields, stored.records.in_order(), stored.next_seq, stored.metadata, stored.layout)
