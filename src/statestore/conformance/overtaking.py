"""Somebody is faster: what the store looked at has changed by the time it writes."""

from __future__ import annotations

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, appended, created, put, said_in, user
from statestore.conformance.contract import Contract, case
from statestore.errors import DocumentConflict, SessionConflict, SessionNotFound, WrongUser
from statestore.pruning import PruneConfig
from statestore.records import UserMessage
from statestore.session import Session


class OvertakingCases(Contract):
    """Decisions are made on what is there when it is written."""

    @case
    async def test_what_was_saved_meanwhile_is_not_pruned(self, bench: Bench) -> None:
        """A session saved between prune's look and its delete lives, and the count is what really went."""
        await bench.commit(*(created(f"s{index}", at=index) for index in range(6)))

        async def save() -> None:
            await bench.store.append("s1", UserMessage("alive"))
            await bench.store.delete_session("s2")

        doomed = await bench.store.prune_sessions(PruneConfig(max_sessions=2, ttl_hours=0), dry_run=True)
        assert [(item.session.id, item.reason) for item in doomed] == [(f"s{n}", "too many") for n in (3, 2, 1, 0)]
        pruned = await bench.interrupted(save).prune_sessions(PruneConfig(max_sessions=2, ttl_hours=0))
        assert pruned == 2
        assert {summary.id for summary in await bench.store.list_sessions()} == {"s5", "s4", "s1"}
        assert await said_in(bench.engine, "s1") == ["alive"]

    @case
    async def test_prune_keeps_the_newest(self, bench: Bench) -> None:
        """Of sessions changed at one moment the lower ids are kept; limits for all and for each user hold."""
        for index in range(9):
            await bench.commit(created(f"s{index}", user_id=(ALICE, BOB)[index % 2], at=index // 3))
        dry = await bench.store.prune_sessions(PruneConfig(max_sessions=7, ttl_hours=0), dry_run=True)
        assert [item.session.id for item in dry] == ["s1", "s2"]
        assert await bench.store.count_sessions() == 9
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=7, ttl_hours=0)) == 2
        assert await bench.store.prune_sessions(PruneConfig(0, 0, max_sessions_per_user=2)) == 3
        assert [summary.id for summary in await bench.store.list_sessions()] == ["s6", "s7", "s8", "s3"]
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=2**64, ttl_hours=2**64)) == 0
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0)) == 0

    @case
    async def test_get_or_create_gives_the_one_session(self, bench: Bench) -> None:
        """Whoever loses the race for a new id gets the winner's session, or WrongUser."""

        async def be_faster() -> None:
            winner = await bench.store.get_or_create_session(ALICE, "s")
            winner.add_user_message("first")
            await bench.store.save_session(winner)

        loser = await bench.interrupted(be_faster).get_or_create_session(ALICE, "s")
        assert [message.content for message in loser.user_messages] == ["first"]

        async def be_bob() -> None:
            await bench.store.get_or_create_session(BOB, "t")

        with pytest.raises(WrongUser):
            await bench.interrupted(be_bob).get_or_create_session(ALICE, "t")

    @case
    async def test_update_with_starts_again_until_nobody_came_between(self, bench: Bench) -> None:
        """update_session_with applies its function to what is there when it is written; nothing is lost."""
        await bench.commit(created("s", metadata={"n": b"0"}))

        def increment(session: Session) -> None:
            session.set_metadata("n", session.metadata["n"] + 1)

        async def interfere() -> None:
            await bench.store.update_session_with("s", increment)

        updated = await bench.interrupted(interfere, times=3).update_session_with("s", increment)
        assert updated.metadata["n"] == 4
        with pytest.raises(SessionNotFound):
            await bench.store.update_session_with("t", increment)

    @case
    async def test_a_rewind_starts_again_when_somebody_appended(self, bench: Bench) -> None:
        """A rewind tells everything that it removed, what was appended while it looked included."""
        await bench.commit(created("s", user("one"), user("two")))

        async def append() -> None:
            await bench.commit(appended("s", user("three")))

        removed = await bench.interrupted(append).rewind_session("s", to=1)
        assert [(entry.seq, entry.kind) for entry in removed] == [(2, "user"), (3, "user")]
        assert await said_in(bench.engine, "s") == ["one"]
        assert await bench.store.rewind_session("s", to=1) == []

    @case
    async def test_who_had_loaded_more_still_appends_after_a_rewind(self, bench: Bench) -> None:
        """Appends by writers that hold what was rewound succeed; numbers go on."""
        await bench.commit(created("s", user("one"), user("two")))
        session = await bench.store.load_session("s")
        assert session is not None
        await bench.store.rewind_session("s", to=1)
        session.add_user_message("three")
        await bench.store.save_session(session)
        assert [entry.seq for entry in await bench.store.timeline("s")] == [1, 3]
        session.user_messages.pop()
        with pytest.raises(SessionConflict):
            await bench.store.save_session(session)

    @case
    async def test_a_rewrite_loses_against_a_faster_append(self, bench: Bench) -> None:
        """A rewrite that was overtaken is refused, and the faster writer's message is there."""
        await bench.commit(created("s", user("one")))
        session = await bench.store.load_session("s")
        assert session is not None
        session.user_messages.clear()

        async def append() -> None:
            await bench.commit(appended("s", user("two")))

        with pytest.raises(SessionConflict):
            await bench.interrupted(append).save_session(session)
        assert await said_in(bench.engine, "s") == ["one", "two"]

    @case
    async def test_a_document_is_replaced_at_its_version(self, bench: Bench) -> None:
        """if_version replaces the version that was read or nothing; the empty text means: only if it is new."""
        store = bench.store
        version = await store.save_json("notes", "n", 1, if_version="")
        with pytest.raises(DocumentConflict):
            await store.save_json("notes", "n", 2, if_version="")

        async def be_faster() -> None:
            await bench.commit(put("n", b"3"))

        with pytest.raises(DocumentConflict):
            await bench.interrupted(be_faster).save_json("notes", "n", 2, if_version=version)
        document = await store.get_document("notes", "n")
        assert document is not None
        assert document.value == 3
        assert await store.save_json("notes", "n", 4, if_version=document.version) != document.version

    @case
    async def test_a_fork_is_a_copy_and_leaves_its_original(self, bench: Bench) -> None:
        """A fork has the records up to a point with their numbers and keys, and a life of its own."""
        await bench.commit(created("s", user("one", key="k"), user("two"), user("three"), metadata={"a": b"1.0"}))
        whole = await bench.store.fork_session("s", new_id="whole")
        part = await bench.store.fork_session("s", at=2, new_id="part")
        assert (whole.parent_session_id, part.metadata) == ("s", {"a": 1.0})
        assert await said_in(bench.engine, "part") == ["one", "two"]
        assert await bench.store.append("part", UserMessage("x"), UserMessage("other"), keys=["k", None]) == [1, 3]
        assert await said_in(bench.engine, "whole") == await said_in(bench.engine, "s") == ["one", "two", "three"]
        assert [s.id for s in await bench.store.list_sessions(parent_session_id="s", order="id")] == ["part", "whole"]
        with pytest.raises(SessionConflict):
            await bench.store.fork_session("s", new_id="part")
        assert await said_in(bench.engine, "part") == ["one", "two", "other"]
