"""Group commit: many batches with one flush, each as if it had been committed alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    ALICE,
    BOB,
    agent,
    appended,
    created,
    document_of,
    everything_in,
    lines_of,
    moment,
    put,
    said_in,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, offered
from statestore.conformance.sampling import samples_of
from statestore.conformance.storage import empty
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    Engine,
    Failure,
    NewRecord,
    Outcome,
    PreconditionFailed,
    Requires,
)
from statestore.errors import InvalidValue, StateStoreError

Results = list[list[Outcome] | Exception]

HUGE: Final = 2**70
"""A sequence number that no engine need take; most cannot."""

REQUIRES: Final = (Requires(), Requires(), Requires(), Requires(absent=True), Requires(present=True))
OWNERS: Final = (*REQUIRES, Requires(owner=ALICE), Requires(owner=BOB))


@st.composite
def _records(draw: st.DrawFn) -> list[NewRecord]:
    records: list[NewRecord] = []
    for _ in range(draw(st.integers(0, 3))):
        make = draw(st.sampled_from([user, agent]))
        records.append(make(draw(st.sampled_from(["one", "two", "é"])), key=draw(st.sampled_from([None, "k1", "k2"]))))
    return records


@st.composite
def _changes(draw: st.DrawFn) -> Change:
    """Any change, of three sessions and two documents."""
    session_id, name = draw(st.sampled_from(["s", "t", "é"])), draw(st.sampled_from(["d", "e"]))
    owns, requires = draw(st.sampled_from(OWNERS)), draw(st.sampled_from(REQUIRES))
    records, number = draw(_records()), draw(st.integers(0, 5))
    match draw(st.sampled_from(["create", "create", "append", "append", "cut", "set", "end", "put", "drop", "clear"])):
        case "create":
            user_id = draw(st.sampled_from([ALICE, BOB]))
            return created(session_id, *records, user_id=user_id, requires=owns, at=number)
        case "append":
            return appended(session_id, *records, requires=owns, at=number)
        case "cut":
            return truncated(session_id, number, *records)
        case "set":
            fields: dict[str, str | None] = {"project_id": (None, "p")[number % 2]}
            value = str(number).encode()
            return ChangeSession(
                session_id, moment(1), set_fields=fields, set_metadata={"n": value, f"m{number}": value}
            )
        case "end":
            return DeleteSession(session_id, owns)
        case "put":
            return put(name, str(number).encode(), requires)
        case "drop":
            return DeleteDocument("notes", name, "json", requires)
        case _:
            return DeleteCategory("notes")


class GroupCases(Contract):
    """Batches that are made together do not know of each other."""

    @offered("group")
    async def test_each_batch_of_a_group_has_its_result(self, bench: Bench) -> None:
        """The results are in the order of the batches, each with one outcome for each change."""
        assert await bench.grouping.commit_group([]) == []
        results = await bench.grouping.commit_group(
            [[created("s", user("one"))], [], [put("n", b"1")], [appended("s", user("two"), user("three"))]]
        )
        shown = [[outcome.seqs for outcome in _outcomes(result)] for result in results]
        assert shown == [[(1,)], [], [()], [(2, 3)]]
        assert await said_in(bench.engine, "s") == ["one", "two", "three"]
        assert (await document_of(bench.engine, "n")).body == b"1"
        await bench.crash()
        assert await said_in(bench.engine, "s") == ["one", "two", "three"]

    @offered("group")
    async def test_a_failed_precondition_takes_no_other_batch_down(self, bench: Bench) -> None:
        """A batch that may not be made is told why, and has done nothing; those before and after it happen."""
        await bench.commit(created("s", user("one"), user_id=BOB))
        failing: list[Change] = [appended("s", user("no"), requires=Requires(owner=ALICE))]
        if bench.spans:
            failing = [put("no"), *failing, DeleteSession("absent", Requires(present=True))]
        for place in range(4):
            batches: list[list[Change]] = [[appended("s", user(f"{place} {n}"))] for n in range(3)]
            batches.insert(place, failing)
            results = await bench.grouping.commit_group(batches)
            failed = results.pop(place)
            assert isinstance(failed, PreconditionFailed)
            index = failing.index(failing[-2] if bench.spans else failing[0])
            missing = (Failure(2, "missing"),) if bench.spans else ()
            assert failed.failures == (Failure(index, "owner"), *missing)
            assert [len(_outcomes(result)) for result in results] == [1, 1, 1]
        assert await said_in(bench.engine, "s") == ["one", *(f"{place} {n}" for place in range(4) for n in range(3))]
        assert await bench.engine.list_categories() == []

    @offered("group")
    async def test_an_invalid_batch_takes_no_other_batch_down(self, bench: Bench) -> None:
        """A batch that names an item twice, or that the engine cannot store, fails alone and whole."""
        await bench.commit(created("s"))
        twice: list[Change] = [appended("s", user("no")), appended("s", user("no"))]
        huge: list[Change] = [created("huge", user("no", seq=HUGE))]
        many: list[Change] = [put("no"), created("huger", next_seq=HUGE)] if bench.spans else huge
        for place in range(3):
            batches: list[list[Change]] = [[appended("s", user(f"{place} {n}"))] for n in range(2)]
            batches[place:place] = [twice, huge, many]
            results = await bench.grouping.commit_group(batches)
            refused = results[place : place + 3]
            assert isinstance(refused[0], InvalidValue)
            for result in refused[1:]:
                assert isinstance(result, (StateStoreError, list)), repr(result)
            del results[place : place + 3]
            assert [len(_outcomes(result)) for result in results] == [1, 1]
            if isinstance(refused[2], Exception):
                assert await bench.engine.get_document("notes", "no", "json") is None
                assert await bench.engine.read_session("huger") is None
            await bench.commit(DeleteSession("huge"))
        assert await said_in(bench.engine, "s") == [f"{place} {n}" for place in range(3) for n in range(2)]

    @offered("group")
    async def test_a_later_batch_sees_the_earlier_ones(self, bench: Bench) -> None:
        """Within a group, each batch is judged by, and applied to, what those before it made."""
        results = await bench.grouping.commit_group(
            [
                [created("s", user("one", key="k"))],
                [appended("s", user("again", key="k"), user("two"))],
                [created("s", requires=Requires(absent=True))],
                [DeleteSession("s")],
                [appended("s", user("no"))],
                [created("s", agent("new", key="k"), user_id=BOB, requires=Requires(absent=True))],
                [appended("s", user("his"), requires=Requires(owner=BOB))],
                [appended("s", user("no"), requires=Requires(owner=ALICE))],
                [put("n", b"1", Requires(absent=True))],
                [put("n", b"2", Requires(absent=True))],
                [put("n", b"3", Requires(present=True))],
                [truncated("s", 1, agent("three"))],
            ]
        )
        failed = [place for place, result in enumerate(results) if isinstance(result, Exception)]
        assert failed == [2, 4, 7, 9]
        assert _outcomes(results[1])[0].seqs == (1, 2)
        assert _outcomes(results[1])[0].before == _outcomes(results[0])[0].version
        (deleted,) = _outcomes(results[3])
        assert (deleted.before, deleted.version, deleted.deleted) == (_outcomes(results[1])[0].version, None, 1)
        (anew,) = _outcomes(results[5])
        assert (anew.before, anew.seqs) == (None, (1,))
        assert _outcomes(results[6])[0].before == anew.version
        assert _outcomes(results[10])[0].before == _outcomes(results[8])[0].version
        (last,) = _outcomes(results[11])
        stored = await session_of(bench.engine, "s")
        assert (last.before, last.version, last.seqs) == (_outcomes(results[6])[0].version, stored.version, (3,))
        assert [line[:3] for line in await lines_of(bench.engine, "s")] == [(1, "agent", "new"), (3, "agent", "three")]
        assert stored.fields.user_id == BOB
        assert (await document_of(bench.engine, "n")).body == b"3"
        assert await bench.engine.check() == []

    @offered("group")
    async def test_a_version_given_in_a_group_holds_in_it(self, bench: Bench) -> None:
        """Of several batches in a group that require one version, the first happens."""
        (outcome,) = await bench.commit(created("s", user("zero")))
        (document,) = await bench.commit(put("n", b"0"))
        needs, wants = Requires(version=outcome.version), Requires(version=document.version)
        results = await bench.grouping.commit_group(
            [[appended("s", user(f"m{n}"), requires=needs)] for n in range(3)]
            + [[put("n", str(n).encode(), wants)] for n in range(1, 4)]
        )
        assert [isinstance(result, PreconditionFailed) for result in results] == [False, True, True] * 2
        assert await said_in(bench.engine, "s") == ["zero", "m0"]
        assert (await document_of(bench.engine, "n")).body == b"1"

    @offered("group")
    async def test_a_group_is_its_batches_one_after_the_other(self, bench: Bench) -> None:
        """Whatever the batches are, together they have the outcomes and leave the state that they have singly."""
        samples = samples_of(st.lists(st.lists(_changes(), max_size=3), min_size=1, max_size=8), 30)
        groups = samples if bench.spans else [[batch[:1] for batch in batches] for batches in samples]
        together: list[Any] = []
        for batches in groups:
            results = await bench.grouping.commit_group(batches)
            together.append((_told(results), await _seen(bench.engine)))
        await empty(bench.engine)
        for batches, expected in zip(groups, together, strict=True):
            results = [await _alone(bench.engine, batch) for batch in batches]
            assert (_told(results), await _seen(bench.engine)) == expected, batches
        await bench.grouping.commit_group([[created("last", user("one"))], [appended("last", user("two"))]])
        assert await said_in(bench.engine, "last") == ["one", "two"]
        assert await bench.engine.check() == []
        before = await everything_in(bench.engine)
        await bench.reopen()
        assert await everything_in(bench.engine) == before

    @offered("group")
    async def test_a_group_is_found_and_told(self, bench: Bench) -> None:
        """What a group makes is searched and watched like anything else."""
        start = await bench.store.change_cursor() if bench.offers("watch") else ""
        await bench.grouping.commit_group(
            [
                [created("s", user("zebra old"))],
                [DeleteSession("s")],
                [created("s", user("zebra"), user("zebra"))],
                [truncated("s", 1)],
                [appended("s", user("zebra"), agent("zebra"))],
                [created("t", user("zebra"))],
            ]
        )
        expected = [("s", 1), ("s", 3), ("s", 4), ("t", 1)]
        if bench.offers("search"):
            hits = await bench.store.search_sessions("zebra")
            assert sorted((hit.session_id, hit.seq) for hit in hits) == expected
        if bench.offers("watch"):
            told = await bench.notices(start)
            place = [notice.what for notice in told].index("deleted")
            records = [(notice.session_id, notice.seq) for notice in told[place:] if notice.what == "record"]
            assert [record for record in records if record != ("s", 2)] == expected
        assert len(await lines_of(bench.engine, "s")) == 3


def _outcomes(result: list[Outcome] | Exception) -> list[Outcome]:
    if isinstance(result, Exception):
        raise result
    assert all(type(outcome) is Outcome for outcome in result)
    return result


async def _alone(engine: Engine, batch: Sequence[Change]) -> list[Outcome] | Exception:
    try:
        return await engine.commit(batch)
    except StateStoreError as error:
        return error


def _told(results: Results) -> list[Any]:
    """Results without the versions, which are never the same."""
    told: list[Any] = []
    for result in results:
        if isinstance(result, PreconditionFailed):
            told.append(result.failures)
        elif isinstance(result, Exception):
            told.append(type(result))
        else:
            told.append([(o.before is None, o.version is None, o.seqs, o.deleted) for o in result])
    return told


async def _seen(engine: Engine) -> dict[str, Any]:
    """All that an engine holds, without the versions."""
    seen: dict[str, Any] = {}
    for item, held in (await everything_in(engine)).items():
        summary, rest = held[0], held[1:]
        if item.startswith("session"):
            fields, metadata, layout, _, *counted = rest
            shown = (summary.id, summary.user_id, summary.updated_text, summary.title, summary.project_id, summary.size)
            seen[item] = (shown, fields, metadata, layout, counted)
        else:
            seen[item] = (summary, rest[0].body)
    return seen
