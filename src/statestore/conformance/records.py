"""Records: their order, the numbers they get and keep, and reading a part of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    Line,
    agent,
    appended,
    created,
    event,
    everything_in,
    lines_of,
    moment,
    put,
    said_in,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteSession, NewRecord, SessionQuery
from statestore.errors import InvalidValue, NotSupported

CONVERSATION: Final = (
    user("u1", 1),
    event("tool", "e2", 2),
    agent("a3", 3),
    agent("a4", 4),
    event("thought", "e5", 5),
    user("u6", 6),
    user("u7", 7),
    agent("a8", 8),
)
SAID: Final = ["u1", "e2", "a3", "a4", "e5", "u6", "u7", "a8"]


class RecordCases(Contract):
    """Records and their numbers."""

    @case
    async def test_numbers_rise_across_kinds(self, bench: Bench) -> None:
        """Messages, responses and events of a session share one row of numbers, given out from 1 in their order."""
        (first,) = await bench.commit(created("s", *CONVERSATION[:5]))
        (second,) = await bench.commit(appended("s", *CONVERSATION[5:]))
        assert (first.seqs, second.seqs) == ((1, 2, 3, 4, 5), (6, 7, 8))
        kinds = [record.kind for record in CONVERSATION]
        expected = [Line(*item) for item in zip(range(1, 9), kinds, SAID, strict=True)]
        assert await lines_of(bench.engine, "s") == expected
        assert (await session_of(bench.engine, "s")).next_seq == 9
        await bench.reopen()
        assert await lines_of(bench.engine, "s") == expected

    @case
    async def test_order_is_the_order_of_arrival(self, bench: Bench) -> None:
        """Records keep the order they came in, though timestamps go backwards, are equal, or lie in the future."""
        times: tuple[list[int | str], ...] = (
            [9, 8, 7, 6, 5, 4, 3, 2],
            [5] * 8,
            [5, 1, 5, 1, 9, 9, 1, 2],
            ["2999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", 5, "1969-12-31T23:59:59.999999999Z"] * 2,
            [moment(5, f".00000000{digit}") for digit in "76543210"],
        )
        makers: tuple[Callable[[str, int | str], NewRecord], ...] = (user, agent, partial(event, "tool"))
        for index, moments in enumerate(times):
            for single in (False, True):
                session_id = f"s{index}{single}"
                records = [makers[(place * 2 + index) % 3](f"r{place}", at) for place, at in enumerate(moments)]
                if single:
                    await bench.commit(created(session_id))
                    for record in records:
                        await bench.commit(appended(session_id, record))
                else:
                    await bench.commit(created(session_id, *records))
                assert await said_in(bench.engine, session_id) == [f"r{place}" for place in range(8)]
        await bench.reopen()
        for index in range(len(times)):
            for single in (False, True):
                assert await said_in(bench.engine, f"s{index}{single}") == [f"r{place}" for place in range(8)]

    @case
    async def test_truncation_drops_the_tail(self, bench: Bench) -> None:
        """Truncating drops exactly the records with a higher number, and the counts follow."""
        await bench.commit(created("s", *CONVERSATION))
        for after, left in ((20, 8), (8, 8), (5, 5), (1, 1), (0, 0), (0, 0)):
            await bench.commit(truncated("s", after))
            assert await said_in(bench.engine, "s") == SAID[:left]
            stored = await session_of(bench.engine, "s")
            assert stored.message_count == sum(said.startswith("u") for said in SAID[:left])
            (summary,) = await bench.engine.list_sessions(SessionQuery())
            counts = (summary.message_count, summary.response_count, summary.event_count)
            assert counts == tuple(sum(said.startswith(letter) for said in SAID[:left]) for letter in "uae")

    @case
    async def test_numbers_are_never_given_out_twice(self, bench: Bench) -> None:
        """A number is not given out again after truncation, of everything either, nor after reopening."""
        (outcome,) = await bench.commit(created("s", *CONVERSATION[:3]))
        given = list(outcome.seqs)
        for after in (2, 1, 0, 0):
            await bench.commit(truncated("s", after))
            await bench.reopen()
            assert (await session_of(bench.engine, "s")).next_seq == given[-1] + 1
            (outcome,) = await bench.commit(appended("s", agent("x"), user("y")))
            assert list(outcome.seqs) == [given[-1] + 1, given[-1] + 2]
            given += outcome.seqs
        assert given == list(range(1, 12))
        assert [line.seq for line in await lines_of(bench.engine, "s")] == given[-2:]

    @case
    async def test_a_change_truncates_before_it_appends(self, bench: Bench) -> None:
        """One change can replace the tail: the dropped numbers stay dropped, the new records go on after them."""
        await bench.commit(created("s", *CONVERSATION))
        (outcome,) = await bench.commit(truncated("s", 2, user("new", 1), agent("newer", 0)))
        assert outcome.seqs == (9, 10)
        assert await lines_of(bench.engine, "s") == [
            Line(1, "user", "u1"),
            Line(2, "tool", "e2"),
            Line(9, "user", "new"),
            Line(10, "agent", "newer"),
        ]
        await bench.reopen()
        assert (await session_of(bench.engine, "s")).next_seq == 11

    @case
    async def test_a_copy_keeps_its_numbers(self, bench: Bench) -> None:
        """A session that is created with numbers keeps them, gaps included, and goes on where it is told to."""
        await bench.commit(created("s", user("a", seq=2), event("t", "b", seq=5), user("c", seq=6), next_seq=20))
        await bench.commit(created("t", agent("a", seq=7)))
        await bench.commit(created("u", next_seq=4))
        await bench.reopen()
        assert [line.seq for line in await lines_of(bench.engine, "s")] == [2, 5, 6]
        assert [(await session_of(bench.engine, name)).next_seq for name in "stu"] == [20, 8, 4]
        for name, expected in (("s", 20), ("t", 8), ("u", 4)):
            assert (await bench.commit(appended(name, user("next"))))[0].seqs == (expected,)

    @case
    async def test_a_copy_made_in_pieces_keeps_its_numbers(self, bench: Bench) -> None:
        """Records that are added with numbers keep them, gaps and keys included; those without go on from there."""
        await bench.commit(created("s", user("a", 1, seq=2), agent("b", 2, seq=3)))
        (outcome,) = await bench.commit(appended("s", event("t", "c", 3, seq=4), user("d", 0, key="k", seq=9)))
        assert outcome.seqs == (4, 9)
        await bench.reopen()
        (outcome,) = await bench.commit(
            appended("s", agent("e", 4), user("no", key="k", seq=1), user("f", 5, seq=15), agent("g", 6))
        )
        assert outcome.seqs == (10, 9, 15, 16)
        expected = [
            Line(2, "user", "a"),
            Line(3, "agent", "b"),
            Line(4, "t", "c"),
            Line(9, "user", "d", "k"),
            Line(10, "agent", "e"),
            Line(15, "user", "f"),
            Line(16, "agent", "g"),
        ]
        assert await lines_of(bench.engine, "s") == expected
        await bench.crash()
        assert await lines_of(bench.engine, "s") == expected
        assert await lines_of(bench.engine, "s", after=4, before=15) == expected[3:5]
        assert (await session_of(bench.engine, "s")).next_seq == 17
        await bench.commit(truncated("s", 3, user("h", seq=30)))
        assert [line.seq for line in await lines_of(bench.engine, "s")] == [2, 3, 30]

    @case
    async def test_a_number_that_is_taken_is_refused(self, bench: Bench) -> None:
        """A number that was ever given out, or that does not rise, is refused before anything is written."""
        await bench.commit(created("s", *CONVERSATION[:5]))
        await bench.commit(truncated("s", 3))
        before = await everything_in(bench.engine)
        taken: tuple[tuple[NewRecord, ...], ...] = (
            (user("x", seq=5),),
            (user("x", seq=4),),
            (user("x", seq=1),),
            (user("x", seq=0),),
            (user("x", seq=-1),),
            (user("x", seq=6), user("y", seq=6)),
            (user("x", seq=8), agent("y", seq=7)),
            (user("x"), agent("y", seq=6)),
            (user("x", key="k", seq=7), user("no", key="k"), event("t", "y", seq=7)),
        )
        for records in taken:
            with pytest.raises(InvalidValue):
                await bench.engine.commit([appended("s", *records)])
            if bench.spans:
                with pytest.raises(InvalidValue):
                    await bench.engine.commit([put("n"), created("t"), appended("s", *records)])
        for records in ((user("x", seq=0),), (user("x", seq=3), user("y", seq=3)), (user("x"), user("y", seq=20))):
            with pytest.raises(InvalidValue):
                await bench.engine.commit([created("t", *records, next_seq=20)])
        assert await everything_in(bench.engine) == before
        assert (await bench.commit(appended("s", user("x", seq=6))))[0].seqs == (6,)

    @case
    async def test_a_session_created_anew_starts_from_one(self, bench: Bench) -> None:
        """A deleted session leaves nothing behind: records, fields, metadata and numbers begin anew."""
        await bench.commit(
            created("s", *CONVERSATION, fields={"project_id": "p"}, metadata={"a": b"1"}, layout=b'{"x":1}')
        )
        (outcome,) = await bench.commit(DeleteSession("s"))
        assert (outcome.deleted, outcome.version) == (1, None)
        assert await bench.engine.read_session("s") is None
        (outcome,) = await bench.commit(created("s", agent("first"), at=3))
        assert (outcome.before, outcome.seqs) == (None, (1,))
        stored = await session_of(bench.engine, "s")
        assert (stored.metadata, stored.layout, stored.fields.project_id, stored.next_seq) == (b"{}", None, None, 2)
        assert stored.fields.created == moment(3)
        assert await said_in(bench.engine, "s") == ["first"]

    @case
    async def test_a_window_is_the_part_that_was_asked_for(self, bench: Bench) -> None:
        """Reading with after, before and last gives exactly those records, and the session whole otherwise."""
        await bench.commit(created("s", *CONVERSATION, metadata={"a": b"1"}))
        await bench.commit(truncated("s", 5, user("u9"), agent("a10"), event("x", "e11")))
        whole = await lines_of(bench.engine, "s")
        assert [line.seq for line in whole] == [1, 2, 3, 4, 5, 9, 10, 11]
        places = (None, 0, 1, 4, 5, 6, 8, 9, 11, 12, 99)
        for after in places:
            for before in places:
                expected = [
                    line
                    for line in whole
                    if (after is None or line.seq > after) and (before is None or line.seq < before)
                ]
                for last in (None, 0, 1, 3, 8, 10**12):
                    stored = await session_of(bench.engine, "s", after=after, before=before, last=last)
                    wanted = expected if last is None else expected[max(0, len(expected) - last) :]
                    found = [(record.seq, record.kind) for record in stored.records.in_order()]
                    assert found == [(line.seq, line.kind) for line in wanted], f"{after=} {before=} {last=}"
                    assert (stored.message_count, stored.next_seq, stored.metadata) == (2, 12, b'{"a":1}')

    @case
    async def test_a_window_reaches_to_the_highest_numbers(self, bench: Bench) -> None:
        """The highest numbers that an engine can store are in every window that they belong to."""
        for last in (2**32 - 1, 2**53 - 1, 2**63 - 1):
            name = f"s{last}"
            numbers = [1, last - 1, last]
            try:
                await bench.commit(created(name, *(user("x", seq=number) for number in numbers)))
            except NotSupported:
                break
            for bound in (last - 1, last, last + 1, last + 2, 2**63, 2**70):
                above = [line.seq for line in await lines_of(bench.engine, name, after=bound)]
                below = [line.seq for line in await lines_of(bench.engine, name, before=bound)]
                assert above == [number for number in numbers if number > bound]
                assert below == [number for number in numbers if number < bound]
        assert await bench.engine.read_session(f"s{2**32 - 1}") is not None

    @case
    async def test_truncating_after_the_highest_number_drops_nothing(self, bench: Bench) -> None:
        """Nor does truncating after any number beyond it: the records stay, and so do their keys."""
        for last in (2**32 - 1, 2**53 - 1, 2**63 - 1):
            name = f"s{last}"
            try:
                await bench.commit(created(name, user("x", seq=1), user("y", key="k", seq=last)))
            except NotSupported:
                break
            for after in (last, last + 1, 2**70):
                await bench.commit(truncated(name, after))
                assert [line.seq for line in await lines_of(bench.engine, name)] == [1, last]
            (outcome,) = await bench.commit(appended(name, user("y", key="k")))
            assert outcome.seqs == (last,)
        assert await bench.engine.read_session(f"s{2**32 - 1}") is not None

    @case
    async def test_a_timeline_can_be_paged_backwards(self, bench: Bench) -> None:
        """Page by page from the newest, every record is seen once, though others append meanwhile."""
        await bench.commit(created("s", *CONVERSATION))
        pages: list[list[int | None]] = []
        before: int | None = None
        while page := await bench.store.timeline("s", before=before, limit=3):
            pages.append([entry.seq for entry in page])
            before = page[0].seq
            await bench.commit(appended("s", user("later")))
        assert pages == [[6, 7, 8], [3, 4, 5], [1, 2]]

    @case
    async def test_many_and_large_records_are_kept(self, bench: Bench) -> None:
        """A thousand records in one change, and a message of a megabyte, come back."""
        records = [(user if index % 2 else agent)(f"message {index}", index) for index in range(1000)]
        (outcome,) = await bench.commit(created("s", *records, user("é" * 500_000)))
        assert outcome.seqs == tuple(range(1, 1002))
        said = await said_in(bench.engine, "s")
        assert said == [f"message {index}" for index in range(1000)] + ["é" * 500_000]
        assert await said_in(bench.engine, "s", last=2) == said[-2:]
        (summary,) = await bench.engine.list_sessions(SessionQuery())
        assert (summary.message_count, summary.response_count) == (501, 500)

    @case
    async def test_sessions_have_numbers_of_their_own(self, bench: Bench) -> None:
        """What happens in one session says nothing about another's numbers or records."""
        await bench.commit(created("s1", *CONVERSATION[:3]), created("s10", *CONVERSATION[:1]), created("S1"))
        await bench.commit(appended("s1", user("x")), appended("s10", user("y")), appended("S1", user("z")))
        assert [(await lines_of(bench.engine, name))[-1][:3] for name in ("s1", "s10", "S1")] == [
            (4, "user", "x"),
            (2, "user", "y"),
            (1, "user", "z"),
        ]
        await bench.commit(DeleteSession("s1"))
        assert await said_in(bench.engine, "s10") == ["u1", "y"]
