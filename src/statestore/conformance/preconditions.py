"""Preconditions: absent, present, at this version, owned by this user; judged before anything happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    ALICE,
    BOB,
    appended,
    created,
    document_of,
    everything_in,
    happens,
    moment,
    put,
    said_in,
    session_of,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteDocument,
    DeleteSession,
    Failure,
    Reason,
    Requires,
)
from statestore.stored import Version

Attempt = Callable[[str, Requires], Change]

DOCUMENT_ATTEMPTS: Final[tuple[Attempt, ...]] = (
    lambda name, requires: put(name, b"2", requires),
    lambda name, requires: DeleteDocument("notes", name, "json", requires),
)
SESSION_ATTEMPTS: Final[tuple[Attempt, ...]] = (
    lambda name, requires: created(name, user("again"), at=9, requires=requires),
    lambda name, requires: DeleteSession(name, requires),
)
ATTEMPTS: Final = DOCUMENT_ATTEMPTS + SESSION_ATTEMPTS


class PreconditionCases(Contract):
    """Preconditions hold or the batch does not happen."""

    @case
    async def test_absent_holds_for_what_is_not_there(self, bench: Bench) -> None:
        """A change that requires absence happens only where there is nothing."""
        await _expect(bench, Requires(absent=True), missing=None, there="exists")

    @case
    async def test_present_holds_for_what_is_there(self, bench: Bench) -> None:
        """A change that requires presence happens only where there is something."""
        await _expect(bench, Requires(present=True), missing="missing", there=None)

    @case
    async def test_a_version_holds_for_that_version_alone(self, bench: Bench) -> None:
        """A change that requires a version happens at that one, not at another, and not where there is nothing."""
        for index, attempt in enumerate(ATTEMPTS):
            name = f"n{index}"
            first = await _version_after(bench, put(name), created(name, user("one")), attempt)
            second = await _version_after(bench, put(name, b"2"), appended(name, user("two")), attempt)
            before = await everything_in(bench.engine)
            for wrong in (first, str(first), "no such version", "\ud800", "\0"):
                assert await bench.failures_of(attempt(name, Requires(version=wrong))) == [Failure(0, "version")]
            assert await everything_in(bench.engine) == before
            absent = attempt("absent", Requires(version=second))
            assert await bench.failures_of(absent) == [Failure(0, "missing")]
            (outcome,) = await bench.commit(attempt(name, Requires(version=second)))
            assert str(outcome.before) == str(second)

    @case
    async def test_the_text_of_a_version_is_as_good_as_the_version(self, bench: Bench) -> None:
        """str(version) can be required, by another engine on the same storage too."""
        for index, attempt in enumerate(ATTEMPTS):
            name = f"n{index}"
            version = await _version_after(bench, put(name), created(name, user("one")), attempt)
            await bench.reopen()
            assert await bench.failures_of(attempt(name, Requires(version=f"{version}x"))) == [Failure(0, "version")]
            (outcome,) = await bench.commit(attempt(name, Requires(version=str(version))))
            assert str(outcome.before) == str(version)

    @case
    async def test_an_owner_holds_for_that_user_alone(self, bench: Bench) -> None:
        """A change that requires an owner never touches another user's session."""
        for index, attempt in enumerate(SESSION_ATTEMPTS):
            name = f"s{index}"
            await bench.commit(created(name, user("one")))
            before = await everything_in(bench.engine)
            for wrong in (BOB, "", "Alice", "alice "):
                assert await bench.failures_of(attempt(name, Requires(owner=wrong))) == [Failure(0, "owner")]
            assert await everything_in(bench.engine) == before
            assert (await bench.commit(attempt(name, Requires(owner=ALICE))))[0].before is not None

    @case
    async def test_an_owner_is_no_objection_where_there_is_no_session(self, bench: Bench) -> None:
        """Required ownership says nothing of a session that does not exist."""
        assert (await bench.commit(DeleteSession("s", Requires(owner=BOB))))[0].deleted == 0
        await bench.commit(created("s", requires=Requires(owner=ALICE)))
        assert (await session_of(bench.engine, "s")).fields.user_id == ALICE
        missing = DeleteSession("t", Requires(owner=ALICE, present=True))
        assert await bench.failures_of(missing) == [Failure(0, "missing")]

    @case
    async def test_the_wrong_owner_hears_nothing_else(self, bench: Bench) -> None:
        """Where the owner is wrong, that is the reason, whatever else does not hold: nothing more leaks."""
        await bench.commit(created("s", user("one")))
        for requires in (
            Requires(owner=BOB, absent=True),
            Requires(owner=BOB, present=True),
            Requires(owner=BOB, version="no such version"),
        ):
            for attempt in SESSION_ATTEMPTS:
                assert await bench.failures_of(attempt("s", requires)) == [Failure(0, "owner")]

    @case
    async def test_all_that_is_required_must_hold(self, bench: Bench) -> None:
        """Several preconditions of one change hold together or not."""
        (outcome,) = await bench.commit(created("s", user("one")))
        right = Requires(present=True, version=outcome.version, owner=ALICE)
        (outcome,) = await bench.commit(appended("s", user("two"), requires=right))
        assert await bench.failures_of(appended("s", user("three"), requires=right)) == [Failure(0, "version")]
        assert await said_in(bench.engine, "s") == ["one", "two"]

    @case
    async def test_a_session_created_anew_is_another_session(self, bench: Bench) -> None:
        """A change that names the moment of creation does not reach a session that took the id since."""
        await bench.commit(created("s", user("one"), at=1))
        required = Requires(created=(await session_of(bench.engine, "s")).fields.created)
        await bench.commit(appended("s", user("two"), requires=required))
        await bench.commit(DeleteSession("s"))
        await bench.commit(created("s", user("other"), at=2))
        for change in (appended("s", user("three"), requires=required), DeleteSession("s", required)):
            assert await bench.failures_of(change) == [Failure(0, "missing")]
        assert await said_in(bench.engine, "s") == ["other"]

    @case
    async def test_a_change_without_create_needs_its_session(self, bench: Bench) -> None:
        """A session that is not to be created must be there, required or not."""
        for requires in (Requires(), Requires(owner=ALICE), Requires(present=True)):
            change = appended("s", user("one"), requires=requires)
            assert await bench.failures_of(change) == [Failure(0, "missing")]
        assert await bench.engine.read_session("s") is None
        await bench.commit(created("s"))
        await bench.commit(appended("s", user("one")))
        assert await said_in(bench.engine, "s") == ["one"]

    @case
    async def test_create_changes_a_session_that_is_there(self, bench: Bench) -> None:
        """With create and no precondition, a session that exists is changed and keeps what it was born with."""
        (first,) = await bench.commit(created("s", user("one"), at=1))
        (second,) = await bench.commit(created("s", user("two"), user_id=BOB, at=2, next_seq=50))
        assert (str(second.before), second.seqs) == (str(first.version), (2,))
        stored = await session_of(bench.engine, "s")
        assert (stored.fields.user_id, stored.fields.created, stored.fields.updated) == (ALICE, moment(1), moment(2))
        assert await said_in(bench.engine, "s") == ["one", "two"]

    @case
    async def test_every_failure_is_named(self, bench: Bench) -> None:
        """A batch that cannot be made tells each change that failed, in their order, and why; and no others."""
        (stored,) = await bench.commit(put("n"))
        await bench.commit(created("s"))
        batch: list[Change] = [
            put("n", b"2", Requires(absent=True)),
            put("new"),
            DeleteDocument("notes", "other", "json", Requires(present=True)),
            put("n", b"2", Requires(version=stored.version), kind="md"),
            created("t"),
            DeleteSession("s", Requires(owner=BOB)),
            ChangeSession("u", moment(1)),
        ]
        before = await everything_in(bench.engine)
        if not bench.spans:
            await bench.assert_refused(batch)
        else:
            reasons: dict[int, Reason] = {0: "exists", 2: "missing", 3: "missing", 5: "owner", 6: "missing"}
            assert await bench.failures_of(*batch) == [Failure(index, reason) for index, reason in reasons.items()]
        assert await everything_in(bench.engine) == before

    @case
    async def test_a_failing_batch_takes_no_other_down(self, bench: Bench) -> None:
        """Of batches that are committed at the same time, each one fails or happens for itself."""
        await bench.commit(put("taken"))

        async def attempt(index: int) -> bool:
            change = put("taken" if index % 2 else f"n{index}", b"2", Requires(absent=True))
            return await happens(bench.engine, change)

        outcomes = await bench.together(*(partial(attempt, index) for index in range(16)))
        assert outcomes == [index % 2 == 0 for index in range(16)]
        assert (await document_of(bench.engine, "taken")).body == b"1"
        for index in range(0, 16, 2):
            assert (await document_of(bench.engine, f"n{index}")).body == b"2"


async def _expect(bench: Bench, requires: Requires, *, missing: Reason | None, there: Reason | None) -> None:
    """Try each kind of change where there is nothing and where there is something."""
    for index, attempt in enumerate(ATTEMPTS):
        await _expect_at(bench, attempt(f"missing{index}", requires), missing)
        await bench.commit(put(f"there{index}"))
        await bench.commit(created(f"there{index}"))
        await _expect_at(bench, attempt(f"there{index}", requires), there)


async def _expect_at(bench: Bench, change: Change, reason: Reason | None) -> None:
    before = await everything_in(bench.engine)
    if reason is None:
        (outcome,) = await bench.commit(change)
        if outcome != type(outcome)(None):
            assert await everything_in(bench.engine) != before
    else:
        assert await bench.failures_of(change) == [Failure(0, reason)]
        assert await everything_in(bench.engine) == before


async def _version_after(bench: Bench, document: Change, session: Change, attempt: Attempt) -> Version:
    """The version of what an attempt is about, after a change to it."""
    (outcome,) = await bench.commit(document if attempt in DOCUMENT_ATTEMPTS else session)
    return outcome.version
