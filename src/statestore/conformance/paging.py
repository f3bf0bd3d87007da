"""Paging: a listing read in parts, while others write."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, appended, created, user
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteSession, SessionQuery
from statestore.stored import Cursor, SessionSummary
from statestore.timestamps import nanoseconds

Order = Literal["updated", "id"]


class PagingCases(Contract):
    """Page by page."""

    @case
    async def test_pages_of_any_size_make_the_whole(self, bench: Bench) -> None:
        """However large the pages, together they are the listing: each session once, in order, ties included."""
        await bench.commit(*(created(f"s{index:02}", at=index // 4) for index in range(23)))
        for order in ("updated", "id"):
            whole = [summary.id for summary in await bench.engine.list_sessions(SessionQuery(order=order))]
            assert len(set(whole)) == 23
            for size in (1, 2, 5, 22, 23, 24, 500):
                assert await _paged(bench, size, order) == whole, f"{order=} {size=}"

    @case
    async def test_pages_keep_their_filter(self, bench: Bench) -> None:
        """Pages of a selection go through that selection alone."""
        await bench.commit(
            *(created(f"s{index:02}", user_id=(ALICE, BOB)[index % 2], at=index // 4) for index in range(20))
        )
        for order in ("updated", "id"):
            assert len(await _paged(bench, 3, order, user_id=ALICE)) == 10
            assert set(await _paged(bench, 3, order, user_id=ALICE)).isdisjoint(
                await _paged(bench, 3, order, user_id=BOB)
            )

    @case
    async def test_a_nanosecond_separates_pages(self, bench: Bench) -> None:
        """Cursors tell moments apart that differ in the last of nine digits."""
        for index in range(12):
            await bench.commit(created(f"s{index * 5 % 12:02}", at=f"2026-01-02T00:00:00.12345678{index % 4}Z"))
        whole = [summary.id for summary in await bench.engine.list_sessions(SessionQuery())]
        assert len(whole) == 12
        assert await _paged(bench, 1, "updated") == whole
        assert await _paged(bench, 5, "updated") == whole

    @case
    async def test_what_nobody_touched_appears_exactly_once(self, bench: Bench) -> None:
        """While others save, create and delete, an untouched session appears once, a touched one at most once."""
        count = 24
        await bench.commit(*(created(f"s{index:02}", at=index // 2) for index in range(count)))
        touched = {f"s{index:02}" for index in (1, 6, 13, 18, 22)}
        deleted = {f"s{index:02}" for index in (3, 10, 21)}
        steps = 0

        async def meddle() -> None:
            nonlocal steps
            steps += 1
            for session_id in touched:
                if (int(session_id[1:]) + steps) % 2:
                    await bench.engine.commit([appended(session_id, user("x"), at=100 + steps)])
            await bench.engine.commit([created(f"new{steps}", at=steps)])
            if steps == 2:
                for session_id in deleted:
                    await bench.engine.commit([DeleteSession(session_id)])

        seen = await _paged(bench, 5, "updated", meanwhile=meddle)
        untouched = {f"s{index:02}" for index in range(count)} - touched - deleted
        assert sorted(session_id for session_id in seen if session_id in untouched) == sorted(untouched)
        assert len(seen) == len(set(seen)), "nothing appears twice"

    @case
    async def test_order_by_id_misses_nothing(self, bench: Bench) -> None:
        """By id, what is there throughout appears exactly once, touched or not."""
        ids = [f"s{index:02}" for index in range(20)]
        await bench.commit(*(created(name, at=index) for index, name in enumerate(ids)))
        steps = 0

        async def meddle() -> None:
            nonlocal steps
            steps += 1
            for name in ids:
                await bench.engine.commit([appended(name, user("x"), at=100 + steps)])
            await bench.engine.commit([created(f"a{steps}"), created(f"z{steps}")][:1])

        seen = await _paged(bench, 6, "id", meanwhile=meddle)
        assert [name for name in seen if name in ids] == ids
        assert seen == sorted(set(seen))

    @case
    async def test_a_cursor_outlives_its_session(self, bench: Bench) -> None:
        """A listing goes on after a session that is gone, has moved, or never was."""
        await bench.commit(*(created(f"s{index}", at=index) for index in range(6)))
        summaries = await bench.store.list_sessions(limit=2)
        assert [summary.id for summary in summaries] == ["s5", "s4"]
        await bench.commit(DeleteSession("s4"))
        assert [s.id for s in await bench.store.list_sessions(limit=2, after=summaries[-1].cursor)] == ["s3", "s2"]
        by_id = await bench.store.list_sessions(order="id", after=summaries[-1].cursor)
        assert [summary.id for summary in by_id] == ["s5"]
        await bench.reopen()
        assert [s.id for s in await bench.store.list_sessions(limit=2, after=summaries[-1].cursor)] == ["s3", "s2"]
        for cursor, expected in ((Cursor(2**80, ""), 5), (Cursor(-(2**80), "z"), 0)):
            assert len(await bench.engine.list_sessions(SessionQuery(after=cursor))) == expected

    @case
    async def test_three_hundred_sessions_are_a_listing(self, bench: Bench) -> None:
        """Many sessions list in one page and in many."""
        await bench.commit(*(created(f"s{index:03}", at=index % 50) for index in range(300)))
        whole = await bench.store.list_sessions()
        assert [summary.id for summary in whole] == sorted(
            (f"s{index:03}" for index in range(300)), key=lambda name: (-(int(name[1:]) % 50), name)
        )
        assert await _paged(bench, 77, "updated") == [summary.id for summary in whole]


async def _paged(
    bench: Bench,
    size: int,
    order: Order,
    *,
    user_id: str | None = None,
    meanwhile: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> list[str]:
    """The ids of a listing that is read in pages, with something happening between them."""
    seen: list[str] = []
    after: Cursor | None = None
    while True:
        query = SessionQuery(user_id=user_id, order=order, after=after, limit=size)
        page: list[SessionSummary] = await bench.engine.list_sessions(query)
        assert len(page) <= size
        seen += (summary.id for summary in page)
        if len(page) < size:
            return seen
        after = Cursor(nanoseconds(page[-1].updated_text), page[-1].id)
        assert after.text == page[-1].cursor
        if meanwhile is not None:
            await meanwhile()
