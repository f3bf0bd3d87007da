"""Idempotency keys: what was acknowledged once is not stored twice."""

from __future__ import annotations

from itertools import product

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, Line, agent, appended, created, event, lines_of, truncated, user
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteSession
from statestore.errors import SessionConflict
from statestore.records import Event, UserMessage
from statestore.session import Session


class KeyCases(Contract):
    """A key is in its session once."""

    @case
    async def test_a_known_key_is_acknowledged_and_not_stored(self, bench: Bench) -> None:
        """An append with a key that is there gets the old number, in any kind and any later commit."""
        await bench.commit(
            created("s", user("one", key="k1"), agent("two", key="k2"), event("tool", "three", key="k3"))
        )
        expected = await lines_of(bench.engine, "s")
        for key, seq in (("k1", 1), ("k2", 2), ("k3", 3)):
            for record in (user("other", key=key), agent("other", key=key), event("other", "other", key=key)):
                assert (await bench.commit(appended("s", record)))[0].seqs == (seq,)
        assert await lines_of(bench.engine, "s") == expected
        assert [line.key for line in expected] == ["k1", "k2", "k3"]

    @case
    async def test_a_key_twice_in_one_change_is_stored_once(self, bench: Bench) -> None:
        """The first record with a key wins within one change, too; others around it are stored."""
        (outcome,) = await bench.commit(
            created("s", user("one", key="k"), user("again", key="k"), user("two"), agent("again", key="k"))
        )
        assert outcome.seqs == (1, 1, 2, 1)
        (outcome,) = await bench.commit(appended("s", agent("three"), user("no", key="k"), user("four", key="l")))
        assert outcome.seqs == (3, 1, 4)
        assert [line[:3] for line in await lines_of(bench.engine, "s")] == [
            (1, "user", "one"),
            (2, "user", "two"),
            (3, "agent", "three"),
            (4, "user", "four"),
        ]

    @case
    async def test_keys_survive_reopening(self, bench: Bench) -> None:
        """A key is known to whoever opens the store later, by closing or by a crash."""
        await bench.commit(created("s", user("one", 9, key="k1"), user("no key"), event("t", "two", 1, key="k2")))
        await bench.reopen()
        assert (await bench.commit(appended("s", user("x", key="k1"))))[0].seqs == (1,)
        await bench.crash()
        assert (await bench.commit(appended("s", user("x", key="k2"))))[0].seqs == (3,)
        assert [line.key for line in await lines_of(bench.engine, "s")] == ["k1", None, "k2"]

    @case
    async def test_a_key_goes_with_its_record(self, bench: Bench) -> None:
        """When a record is truncated, its key is free again; the others' keys stay."""
        await bench.commit(created("s", user("one", key="k1"), user("two", key="k2"), user("three", key="k3")))
        await bench.commit(truncated("s", 1))
        assert (await bench.commit(appended("s", user("x", key="k1"), user("new", key="k2"))))[0].seqs == (1, 4)
        assert await lines_of(bench.engine, "s") == [Line(1, "user", "one", "k1"), Line(4, "user", "new", "k2")]
        await bench.reopen()
        assert (await bench.commit(appended("s", user("x", key="k2"), user("y", key="k3"))))[0].seqs == (4, 5)

    @case
    async def test_a_key_can_be_stored_anew_by_the_change_that_drops_it(self, bench: Bench) -> None:
        """A change that truncates a record may append its key again: truncation comes first."""
        await bench.commit(created("s", user("one", key="k1"), user("two", key="k2")))
        (outcome,) = await bench.commit(truncated("s", 1, user("three", key="k2"), user("no", key="k1")))
        assert outcome.seqs == (3, 1)
        assert await lines_of(bench.engine, "s") == [Line(1, "user", "one", "k1"), Line(3, "user", "three", "k2")]

    @case
    async def test_a_part_of_a_session_comes_with_its_own_keys(self, bench: Bench) -> None:
        """Whatever part is read, its records have their keys, among others that have none and beside gaps."""
        some = user("1", key="k1"), agent("2"), event("t", "3", key="k3"), user("4", key="k4")
        more = user("5", key="k5"), agent("6"), user("no", key="k1"), user("7", key="k7")
        await bench.commit(created("s", *some))
        await bench.commit(truncated("s", 3, *more))
        lines = await lines_of(bench.engine, "s")
        assert [line.key for line in lines] == ["k1", None, "k3", "k5", None, "k7"]
        for after, before, last in product((None, 0, 2, 3, 6), (None, 1, 4, 5, 9), (None, 0, 1, 2)):
            part = [line for line in lines if (after or 0) < line.seq < (before or 99)]
            expected = part if last is None else part[len(part) - min(last, len(part)) :]
            assert await lines_of(bench.engine, "s", after=after, before=before, last=last) == expected

    @case
    async def test_keys_are_exact_and_their_sessions_own(self, bench: Bench) -> None:
        """Keys differ in case, form and space; another session, and a session created anew, know none of them."""
        keys = ["k", "K", " k", "k ", "é", "e\u0301", "%", "k%", "0", "\U0001f600", "k" * 500]
        await bench.commit(created("s", *(user(key, key=key) for key in keys)))
        assert [line.key for line in await lines_of(bench.engine, "s")] == keys
        await bench.commit(created("t"))
        assert (await bench.commit(appended("t", user("x", key="K"))))[0].seqs == (1,)
        await bench.commit(DeleteSession("s"))
        await bench.commit(created("s"))
        assert (await bench.commit(appended("s", user("x", key="é"))))[0].seqs == (1,)

    @case
    async def test_equal_records_without_a_key_are_two_records(self, bench: Bench) -> None:
        """Only keys make records the same: the same message twice is two messages."""
        await bench.commit(created("s", user("one"), user("one")))
        await bench.commit(appended("s", user("one")))
        assert [line.seq for line in await lines_of(bench.engine, "s")] == [1, 2, 3]

    @case
    async def test_the_store_passes_keys_through(self, bench: Bench) -> None:
        """append and save take keys; an object that holds a record too many may not rewrite history."""
        store = bench.store
        session = Session.with_id(ALICE, "s")
        session.add_user_message("one", key="k1")
        await store.save_session(session)
        assert await store.append("s", UserMessage("x"), Event("t", 2), keys=["k1", "k2"]) == [1, 2]
        assert await store.append("s", UserMessage("x"), UserMessage("three"), keys=["k2", None]) == [2, 3]
        session.add_event("t", "x", key="k2")
        await store.save_session(session)
        assert [line[:3] for line in await lines_of(bench.engine, "s")] == [
            (1, "user", "one"),
            (2, "t", 2),
            (3, "user", "three"),
        ]
        session.user_messages.pop()
        with pytest.raises(SessionConflict):
            await store.save_session(session)

    @case
    async def test_one_key_from_many_at_once_is_stored_once(self, bench: Bench) -> None:
        """Of many who append the same key at the same time, one stores it and all hear its number."""
        await bench.commit(created("s", user("before")))

        async def append() -> list[list[int]]:
            return [await bench.store.append("s", UserMessage("x"), keys=[f"k{n}"]) for n in range(5)]

        answers = await bench.together(*[append] * 6)
        assert all(answer == answers[0] for answer in answers)
        assert len(await lines_of(bench.engine, "s")) == 6
