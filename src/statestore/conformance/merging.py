"""Saving merges: what each writer changed is kept; what nobody may overwrite is refused, and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, everything_in, said_in, session_of
from statestore.conformance.contract import Contract, case
from statestore.errors import SessionConflict, SessionNotFound, WrongUser
from statestore.records import UserMessage
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore


class MergingCases(Contract):
    """Two writers, one session."""

    @case
    async def test_two_writers_keep_every_message(self, bench: Bench) -> None:
        """Two who loaded, added and saved both keep all their messages, in each one's order."""
        _, first, second = await _two_copies(bench)
        first.add_user_message("a1")
        second.add_user_message("b1")
        second.add_agent_response("b2")
        first.add_event("tool", "a2")
        await bench.store.save_session(first)
        await (await bench.another()).store.save_session(second)
        assert await said_in(bench.engine, "s") == ["start", "a1", "a2", "b1", "b2"]

    @case
    async def test_fields_and_metadata_merge_by_name(self, bench: Bench) -> None:
        """Each writer's changed fields and metadata keys are kept; the last one wins only where both changed one."""
        _, first, second = await _two_copies(bench)
        first.set_active_seed("a")
        first.set_metadata("mine", "a")
        first.set_metadata("both", "a")
        first.project_id = "a"
        del first.metadata["old"]
        second.set_active_persona("b")
        second.set_metadata("yours", "b")
        second.set_metadata("both", "b")
        second.project_id = "b"
        await bench.store.save_session(first)
        await bench.store.save_session(second)
        loaded = await _loaded(bench)
        assert (loaded.active_seed_id, loaded.active_persona_id, loaded.project_id) == ("a", "b", "b")
        assert loaded.metadata == {"kept": 1, "mine": "a", "both": "b", "yours": "b"}
        first.set_active_seed(None)
        await bench.store.save_session(first)
        loaded = await _loaded(bench)
        assert (loaded.active_seed_id, loaded.active_persona_id, loaded.project_id) == (None, "b", "b")
        assert loaded.metadata == {"kept": 1, "mine": "a", "both": "b", "yours": "b"}

    @case
    async def test_labels_follow_the_merged_metadata(self, bench: Bench) -> None:
        """Title and project in listings are those of the metadata as they are after the merge."""
        _, first, second = await _two_copies(bench)
        first.set_metadata("project_id", "single")
        second.set_metadata("project_ids", ["several"])
        first.set_metadata("title", "Title")
        await bench.store.save_session(first)
        await bench.store.save_session(second)
        (summary,) = await bench.store.list_sessions()
        assert (summary.project_id, summary.title) == ("single", "Title")
        assert [s.id for s in await bench.store.list_sessions(project_id="single")] == ["s"]

    @case
    async def test_updated_at_never_goes_back(self, bench: Bench) -> None:
        """A writer with a slow clock does not make a session older."""
        _, first, second = await _two_copies(bench)
        first.updated_at = datetime(2060, 1, 1, tzinfo=UTC)
        second.add_user_message("late")
        second.updated_at = datetime(2050, 1, 1, tzinfo=UTC)
        await bench.store.save_session(first)
        await bench.store.save_session(second)
        assert (await _loaded(bench)).updated_at == datetime(2060, 1, 1, tzinfo=UTC)

    @case
    async def test_saving_what_did_not_change_writes_nothing(self, bench: Bench) -> None:
        """Saving twice, or saving what was only read, leaves even the version as it was."""
        original, first, _ = await _two_copies(bench)
        before = await everything_in(bench.engine)
        for session in (original, first, first):
            await bench.store.save_session(session)
        assert await everything_in(bench.engine) == before
        first.add_user_message("one")
        await bench.store.save_session(first)
        before = await everything_in(bench.engine)
        await bench.store.save_session(first)
        assert await everything_in(bench.engine) == before

    @case
    async def test_history_can_be_rewritten_at_its_version(self, bench: Bench) -> None:
        """Who holds the current version may edit, remove and replace; everything else stays in place."""
        _, first, second = await _two_copies(bench)
        first.add_agent_response("answer")
        first.add_user_message("second")
        await bench.store.save_session(first)
        first.user_messages[0] = UserMessage("edited")
        await bench.store.save_session(first)
        assert await said_in(bench.engine, "s") == ["edited", "answer", "second"]
        first.agent_responses.clear()
        first.add_agent_response("last")
        await bench.store.save_session(first)
        assert await said_in(bench.engine, "s") == ["edited", "second", "last"]
        before = await everything_in(bench.engine)
        second.user_messages.pop()
        with pytest.raises(SessionConflict):
            await bench.store.save_session(second)
        assert await everything_in(bench.engine) == before

    @case
    async def test_a_stale_object_appends_but_does_not_rewrite(self, bench: Bench) -> None:
        """After a merge an object may go on appending; a rewrite is refused until it is loaded again."""
        _, first, second = await _two_copies(bench)
        first.add_user_message("a1")
        await bench.store.save_session(first)
        second.add_user_message("b1")
        await bench.store.save_session(second)
        second.add_user_message("b2")
        await bench.store.save_session(second)
        assert second.version is None
        assert await said_in(bench.engine, "s") == ["start", "a1", "b1", "b2"]
        before = await everything_in(bench.engine)
        for session in (first, second):
            session.user_messages.pop(0)
            with pytest.raises(SessionConflict):
                await bench.store.save_session(session)
        assert await everything_in(bench.engine) == before
        loaded = await _loaded(bench)
        loaded.user_messages.pop(0)
        await bench.store.save_session(loaded)
        assert await said_in(bench.engine, "s") == ["a1", "b1", "b2"]

    @case
    async def test_the_newest_part_can_be_loaded_and_grown(self, bench: Bench) -> None:
        """What was loaded with last=N can be appended to and edited; what was not loaded stays."""
        session, _, _ = await _two_copies(bench)
        for index in range(6):
            session.add_user_message(f"m{index}")
        await bench.store.save_session(session)
        part = await bench.store.load_session("s", last=2)
        assert part is not None
        assert [message.content for message in part.user_messages] == ["m4", "m5"]
        part.add_user_message("m6")
        await bench.store.save_session(part)
        part.user_messages[1] = UserMessage("edited")
        await bench.store.save_session(part)
        assert await said_in(bench.engine, "s") == ["start", "m0", "m1", "m2", "m3", "m4", "edited", "m6"]

    @case
    async def test_a_session_deleted_meanwhile_is_not_found(self, bench: Bench) -> None:
        """Saving to a deleted session raises SessionNotFound; recreate=True stores it anew and whole."""
        _, first, _ = await _two_copies(bench)
        await bench.store.delete_session("s")
        first.add_user_message("more")
        with pytest.raises(SessionNotFound):
            await bench.store.save_session(first)
        assert await bench.engine.read_session("s") is None
        await bench.store.save_session(first, recreate=True)
        assert await said_in(bench.engine, "s") == ["start", "more"]
        loaded = await _loaded(bench)
        assert (loaded.metadata, loaded.created_text) == (first.metadata, first.created_text)

    @case
    async def test_a_new_session_takes_no_id_that_is_taken(self, bench: Bench) -> None:
        """A new Session whose id exists raises SessionConflict, or WrongUser if it is another's; nothing is written."""
        await _two_copies(bench)
        before = await everything_in(bench.engine)
        for user_id, error in ((ALICE, SessionConflict), (BOB, WrongUser)):
            session = Session.with_id(user_id, "s")
            session.add_user_message("mine")
            with pytest.raises(error):
                await bench.store.save_session(session)
            with pytest.raises(error):
                await bench.store.save_session(session, recreate=True)
        assert await everything_in(bench.engine) == before

    @case
    async def test_an_object_outlives_its_store(self, bench: Bench) -> None:
        """A session object that was loaded before a reopening can be saved, appended to and rewritten after it."""
        _, first, _ = await _two_copies(bench)
        await bench.reopen()
        first.user_messages[0] = UserMessage("edited")
        await bench.store.save_session(first)
        await bench.crash()
        first.add_user_message("more")
        await bench.store.save_session(first)
        assert await said_in(bench.engine, "s") == ["edited", "more"]
        assert first.version == str((await session_of(bench.engine, "s")).version)


async def _two_copies(bench: Bench) -> tuple[Session, Session, Session]:
    """A stored session, and two objects that were loaded from it."""
    session = Session.with_id(ALICE, "s")
    session.add_user_message("start")
    session.set_metadata("kept", 1)
    session.set_metadata("old", 2)
    await bench.store.save_session(session)
    store: AsyncStateStore = bench.store
    first, second = await store.load_session("s"), await store.load_session("s")
    assert first is not None
    assert second is not None
    return session, first, second


async def _loaded(bench: Bench) -> Session:
    session = await bench.store.load_session("s")
    assert session is not None
    return session
