"""Users: nobody gets at another's sessions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, created, everything_in, said_in, session_of, user
from statestore.conformance.contract import Contract, case
from statestore.engine import SessionQuery
from statestore.errors import SessionNotFound, WrongUser
from statestore.pruning import PruneConfig
from statestore.records import UserMessage
from statestore.session import Session


class UserCases(Contract):
    """Alice's sessions are Alice's."""

    @case
    async def test_another_users_session_is_not_handed_out(self, bench: Bench) -> None:
        """get_or_create_session of another user's id raises WrongUser and changes nothing."""
        first = await bench.store.get_or_create_session(ALICE, "s")
        before = await everything_in(bench.engine)
        with pytest.raises(WrongUser):
            await bench.store.get_or_create_session(BOB, "s")
        assert await everything_in(bench.engine) == before
        again = await bench.store.get_or_create_session(ALICE, "s")
        assert (again.user_id, again.created_text) == (ALICE, first.created_text)

    @case
    async def test_an_owner_never_changes(self, bench: Bench) -> None:
        """Whatever is done to a session, it stays its user's, and keeps the moment it was created."""
        await bench.commit(created("s", at=1))
        for index in range(3):
            await bench.commit(created("s", user(f"m{index}"), user_id=BOB, at=5 + index))
        stored = await session_of(bench.engine, "s")
        assert stored.fields.user_id == ALICE
        assert stored.fields.created == created("s", at=1).updated
        assert await bench.engine.list_sessions(SessionQuery(user_id=BOB)) == []

    @case
    async def test_for_user_sees_that_users_sessions_alone(self, bench: Bench) -> None:
        """To a user's store, others' sessions are absent: not loaded, listed, counted, found or paged."""
        await bench.commit(created("a", user("x"), at=1), created("b", user("y"), user_id=BOB, at=2))
        bobs = bench.store.for_user(BOB)
        assert bobs.user_id == BOB
        assert await bobs.load_session("a") is None
        assert not await bobs.session_exists("a")
        assert [summary.id for summary in await bobs.list_sessions()] == ["b"]
        assert await bobs.list_sessions(user_id=ALICE) == []
        assert (await bobs.count_sessions(), await bobs.count_sessions(user_id=ALICE)) == (1, 0)
        with pytest.raises(SessionNotFound):
            await bobs.timeline("a")
        assert len(await bobs.timeline("b")) == 1

    @case
    async def test_for_user_changes_that_users_sessions_alone(self, bench: Bench) -> None:
        """A user's store cannot save, append to, delete, rewind, fork, update or prune another's session."""
        await bench.commit(created("a", user("x")), created("b", user("y"), user_id=BOB))
        hers = await bench.store.load_session("a")
        assert hers is not None
        hers.add_user_message("more")
        bobs = bench.store.for_user(BOB)
        before = await everything_in(bench.engine)
        wrong_user: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: bobs.save_session(hers),
            lambda: bobs.save_session(Session.with_id(BOB, "a")),
            lambda: bobs.get_or_create_session(ALICE, "a"),
            lambda: bobs.get_or_create_session(BOB, "a"),
            lambda: bobs.get_or_create_session(ALICE, "new"),
        ]
        not_found: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: bobs.append("a", UserMessage("x")),
            lambda: bobs.rewind_session("a", to=0),
            lambda: bobs.fork_session("a"),
            lambda: bobs.update_session_with("a", lambda session: session.add_user_message("x")),
        ]
        for calls, error in ((wrong_user, WrongUser), (not_found, SessionNotFound)):
            for call in calls:
                with pytest.raises(error):
                    await call()
        assert not await bobs.delete_session("a")
        assert await everything_in(bench.engine) == before
        assert await bobs.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 0
        assert await bobs.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1)) == 1
        assert [summary.id for summary in await bench.store.list_sessions()] == ["a"]

    @case
    async def test_a_session_that_changes_hands_is_out_of_reach(self, bench: Bench) -> None:
        """A session deleted and created anew by another user is not changed through an object of the first."""
        await bench.commit(created("s", user("x")))
        hers = await bench.store.load_session("s")
        assert hers is not None
        await bench.store.delete_session("s")
        await bench.commit(created("s", user("y"), user_id=BOB))
        before = await everything_in(bench.engine)
        hers.add_user_message("more")
        with pytest.raises(SessionNotFound):
            await bench.store.save_session(hers)
        with pytest.raises(WrongUser):
            await bench.store.save_session(hers, recreate=True)
        for change in (
            bench.store.for_user(ALICE).append("s", UserMessage("z")),
            bench.store.for_user(ALICE).rewind_session("s", to=0),
        ):
            with pytest.raises(SessionNotFound):
                await change
        assert await everything_in(bench.engine) == before

    @case
    async def test_ownership_is_judged_when_it_is_written(self, bench: Bench) -> None:
        """A session that changes hands between a user's look and their write is not touched."""
        await bench.commit(created("s", user("x"), user("y")))

        async def take_over() -> None:
            await bench.store.delete_session("s")
            await bench.commit(created("s", user("bob's"), user("own"), user_id=BOB))

        async def give_back() -> None:
            await bench.store.delete_session("s")
            await bench.commit(created("s", user("x"), user("y")))

        def _add_z(session: Session) -> None:
            session.add_user_message("z")

        async def assert_untouched(attempt: Coroutine[Any, Any, object]) -> None:
            with pytest.raises(SessionNotFound):
                await attempt
            assert await said_in(bench.engine, "s") == ["bob's", "own"]
            await give_back()

        def hers() -> Any:
            return bench.interrupted(take_over).for_user(ALICE)

        await assert_untouched(hers().append("s", UserMessage("z")))
        await assert_untouched(hers().rewind_session("s", to=1))
        await assert_untouched(hers().update_session_with("s", _add_z))
        assert not await hers().delete_session("s")
        assert await said_in(bench.engine, "s") == ["bob's", "own"]
        await give_back()
        assert await hers().prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1)) == 0
        assert await said_in(bench.engine, "s") == ["bob's", "own"]

    @case
    async def test_erasing_a_user_erases_that_user(self, bench: Bench) -> None:
        """erase_user removes all of a user's sessions and nobody else's."""
        users = [ALICE, BOB, "Alice", "alice ", "alic", ""]
        for index, user_id in enumerate(users * 3):
            await bench.commit(created(f"s{index:02}", user("x"), user_id=user_id))
        assert await bench.store.erase_user(ALICE) == 3
        assert await bench.store.erase_user(ALICE) == 0
        await bench.reopen()
        left = [summary.id for summary in await bench.store.list_sessions(order="id")]
        assert left == [f"s{index:02}" for index in range(18) if index % 6]

    @case
    async def test_erasing_spares_what_changed_hands(self, bench: Bench) -> None:
        """A session that belongs to somebody else by the time of its erasure stays."""
        await bench.commit(created("s1"), created("s2"))

        async def take_over() -> None:
            await bench.store.delete_session("s2")
            await bench.commit(created("s2", user("mine"), user_id=BOB))

        assert await bench.interrupted(take_over).erase_user(ALICE) == 1
        assert [summary.id for summary in await bench.store.list_sessions()] == ["s2"]
