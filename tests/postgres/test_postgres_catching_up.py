"""Bringing the index of words up to date: as far as a search needs it, beside writers, other stores and searches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from postgres_hooks import append_through, connected, run_in

from statestore import AsyncStateStore, SearchHit, StateStore, StoreUnavailable, UserMessage
from statestore.conformance.changes import appended, user
from statestore.engines.postgres import catching_up, cutting, indexing

MANY = 12
TOO_MANY = 30
"""Steps that no search here needs: it is going on and on."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step indexes a few changes, records or sessions."""
    monkeypatch.setattr(catching_up, "CHANGES_A_STEP", 4)
    monkeypatch.setattr(indexing, "RECORDS_A_STEP", 3)
    monkeypatch.setattr(indexing, "SESSIONS_A_STEP", 2)


def before_steps(monkeypatch: pytest.MonkeyPatch, deed: Callable[[int], Awaitable[Any]]) -> list[int]:
    """Have something done before each step, which is counted from 0; the steps until now. Too many are an error."""
    steps: list[int] = []
    index_some = catching_up.index_some

    async def do_and_index(*arguments: Any) -> Any:
        steps.append(len(steps))
        assert len(steps) < TOO_MANY
        await deed(steps[-1])
        return await index_some(*arguments)

    monkeypatch.setattr(catching_up, "index_some", do_and_index)
    return steps


def _ids(hits: list[SearchHit]) -> list[str]:
    return sorted(hit.session_id for hit in hits)


async def _fill(store: AsyncStateStore, *ids: str, each: int = 4) -> None:
    for session_id in ids:
        await store.get_or_create_session("alice", session_id)
        for number in range(each):
            await store.append(session_id, UserMessage(f"zebra {number}"))


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("kept", [1000, 2])
def test_a_search_ends_although_others_write_more_than_it_can_index(
    url: str, monkeypatch: pytest.MonkeyPatch, is_indexed: bool, kept: int
) -> None:
    """Also if what they change is forgotten before the index has seen it."""

    async def work() -> None:
        async with AsyncStateStore.open(url) as store, AsyncStateStore.open(url) as writer:
            await _fill(store, "a busy one", "b", "c")
            if is_indexed:
                await store.search_sessions("zebra")
                await _fill(store, "a busy one", "b", "c")
            await store.append("c", UserMessage("pin"))

            async def write(_: int) -> None:
                for _ in range(3):
                    await writer.append("a busy one", *(UserMessage("horse") for _ in range(3)))
                await asyncio.to_thread(run_in, url, f"SELECT tidy_up({kept})")

            before_steps(monkeypatch, write)
            assert _ids(await store.search_sessions("pin")) == ["c"]
            monkeypatch.undo()
            assert len(await store.search_sessions("zebra", limit=100)) == (24 if is_indexed else 12)

    asyncio.run(work())


def test_a_search_indexes_no_more_than_what_was_there_when_it_began(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await _fill(store, "a")
            await store.search_sessions("zebra")
            await store.append("a", UserMessage("pin"))
            before_steps(monkeypatch, lambda _: store.append("a", UserMessage("horse")))
            assert _ids(await store.search_sessions("pin")) == ["a"]

    asyncio.run(work())
    assert run_in(url, "SELECT count(*) FROM words WHERE lexemes @@ 'pin'") == [(1,)]
    assert run_in(url, "SELECT count(*) FROM words WHERE lexemes @@ 'horse'") == [(0,)]


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_another_store_has_indexed_meanwhile_is_taken_as_it_is(
    url: str, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store, AsyncStateStore.open(url) as other:
            await _fill(store, "a", "b", "c")
            if is_indexed:
                await store.search_sessions("zebra")
                await _fill(store, "a", "b")

            async def change_and_search(step: int) -> None:
                if step == 1:
                    monkeypatch.undo()
                    await other.rewind_session("a", to=1)
                    await other.delete_session("b")
                    await _fill(other, "b", each=1)
                    assert _ids(await other.search_sessions("zebra")) == ["a", "b", *["c"] * 4]

            steps = before_steps(monkeypatch, change_and_search)
            assert _ids(await store.search_sessions("zebra")) == ["a", "b", *["c"] * 4]
            assert len(steps) == 2, "the second found that there was nothing left to do"

    asyncio.run(work())
    assert run_in(url, "SELECT count(*) FROM words") == [(6,)]


def test_however_much_happened_after_what_is_still_under_way_all_of_it_is_found(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what was under way is found when it has happened, whenever in a search that was."""

    async def work(store: AsyncStateStore, end_at: int | None) -> None:
        async with connected(url) as connection:
            slow = connection.transaction()
            await slow.start()
            await append_through(connection, appended("slow", user("zebra")))

            async def end(step: int) -> None:
                if step == end_at:
                    await slow.commit()

            await _fill(store, "fast", each=10)
            with monkeypatch.context() as patch:
                before_steps(patch, end)
                hits = await store.search_sessions("zebra", limit=100)
            assert _ids(hits).count("fast") == 10
            if end_at is None:
                await slow.commit()
        assert _ids(await store.search_sessions("zebra")).count("slow") == 1

    async def work_on_all() -> None:
        async with AsyncStateStore.open(url) as store:
            for end_at in (None, 0, 1, 2):
                await store.get_or_create_session("alice", "slow")
                await store.search_sessions("zebra")
                await work(store, end_at)
                await store.delete_session("slow")
                await store.delete_session("fast")

    asyncio.run(work_on_all())


def test_an_index_that_fell_behind_what_is_kept_forgets_what_is_gone_and_gets_what_is_new(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        store.get_or_create_session("alice", name)
        store.append(name, UserMessage("zebra one"), UserMessage("zebra two"))
    assert len(store.search_sessions("zebra")) == 6
    store.delete_session("a")
    store.rewind_session("b", to=1)
    store.append("b", UserMessage("zebra three"))
    store.delete_session("c")
    store.get_or_create_session("alice", "c")
    store.append("c", UserMessage("zebra four"))
    run_in(url, "SELECT tidy_up(1)")
    form = cutting.indexed_form
    looked_at: list[str] = []

    def noted_form(text: str, *wanted: Any) -> Any:
        looked_at.append(text)
        return form(text, *wanted)

    monkeypatch.setattr(cutting, "indexed_form", noted_form)
    assert [(hit.session_id, hit.seq) for hit in store.search_sessions("zebra")] == [("b", 1), ("b", 3), ("c", 1)]
    assert sorted(looked_at) == ["zebra four", "zebra three"]
    assert run_in(url, "SELECT id, seq FROM words ORDER BY id, seq") == [("b", 1), ("b", 3), ("c", 1)]
    assert run_in(url, "SELECT id FROM indexed ORDER BY id") == [("b",), ("c",)]


@pytest.mark.parametrize("is_held_up", [False, True])
def test_many_searches_at_once_index_once_and_leave_connections_to_others(
    url: str, monkeypatch: pytest.MonkeyPatch, is_held_up: bool
) -> None:
    """Also while a transaction is under way, so that the index cannot be said to have seen all that there is."""

    async def work() -> None:
        async with AsyncStateStore.open(f"{url}&connections=2") as store, connected(url) as connection:
            await _fill(store, "a", "slow")
            await store.search_sessions("zebra")
            if is_held_up:
                await connection.execute("BEGIN")
                await append_through(connection, appended("slow", user("zebra")))
            await _fill(store, "a")

            async def append_beside(step: int) -> None:
                if step == 0:
                    await all_wait.wait()
                    await store.append("a", UserMessage("horse"))

            all_wait = when_all_wait(monkeypatch)
            steps = before_steps(monkeypatch, append_beside)
            found = await asyncio.gather(*(store.search_sessions("zebra") for _ in range(MANY)))
            assert [_ids(hits) for hits in found] == [["a"] * 8 + ["slow"] * 4] * MANY
            assert len(steps) == 2, "for four records"

    asyncio.run(work())


def when_all_wait(monkeypatch: pytest.MonkeyPatch, count: int = MANY) -> asyncio.Event:
    """What is set when so many have looked how far the index is."""
    all_wait = asyncio.Event()
    state_of = catching_up.state_of
    seen: list[Any] = []

    async def look(connection: Any) -> Any:
        seen.append(await state_of(connection))
        if len(seen) == count:
            all_wait.set()
        return seen[-1]

    monkeypatch.setattr(catching_up, "state_of", look)
    return all_wait


def test_who_waits_for_another_search_finds_what_that_one_came_too_early_for(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was under way while the other search passed by, and has happened before this search began."""

    async def work() -> None:
        async with AsyncStateStore.open(url) as store, connected(url) as connection:
            await _fill(store, "fast", "slow", each=0)
            await store.search_sessions("zebra")
            slow = connection.transaction()
            await slow.start()
            await append_through(connection, appended("slow", user("zebra")))
            await _fill(store, "fast", each=6)
            late: list[asyncio.Task[list[SearchHit]]] = []

            async def begin_another(step: int) -> None:
                if step == 2:
                    await slow.commit()
                    has_looked = when_all_wait(monkeypatch, 1)
                    late.append(asyncio.create_task(store.search_sessions("zebra")))
                    await has_looked.wait()

            before_steps(monkeypatch, begin_another)
            assert _ids(await store.search_sessions("zebra")).count("fast") == 6
            assert _ids(await late[0]) == [*["fast"] * 6, "slow"]

    asyncio.run(work())


def test_who_waits_for_a_search_that_looked_earlier_finds_what_happened_since(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await _fill(store, "a", each=1)
            await store.search_sessions("zebra")
            await _fill(store, "a", each=1)
            has_looked, may_go_on, is_at_it = asyncio.Event(), asyncio.Event(), asyncio.Event()
            pauses = [(has_looked, may_go_on), (may_go_on, is_at_it)]
            state_of = catching_up.state_of

            async def look_and_pause(connection: Any) -> Any:
                state = await state_of(connection)
                if pauses:
                    reached, awaited = pauses.pop(0)
                    reached.set()
                    await awaited.wait()
                return state

            async def begin(_: int) -> None:
                is_at_it.set()

            monkeypatch.setattr(catching_up, "state_of", look_and_pause)
            before_steps(monkeypatch, begin)
            early = asyncio.create_task(store.search_sessions("zebra"))
            await has_looked.wait()
            await store.append("a", UserMessage("zebra"))
            assert len(await store.search_sessions("zebra")) == 3
            assert len(await early) >= 2

    asyncio.run(work())


def test_all_who_wait_for_a_search_are_served_by_the_next_one(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store, connected(url) as connection:
            await _fill(store, "fast", "slow", each=0)
            await store.search_sessions("zebra")
            await connection.execute("BEGIN")
            await append_through(connection, appended("slow", user("horse")))
            await _fill(store, "fast", each=1)
            others: list[asyncio.Task[list[SearchHit]]] = []

            async def begin_others(step: int) -> None:
                while step == 0 and len(others) < TOO_MANY:
                    await store.append("fast", UserMessage("zebra"))
                    with monkeypatch.context() as patch:
                        has_looked = when_all_wait(patch, 1)
                        others.append(asyncio.create_task(store.search_sessions("zebra")))
                        await has_looked.wait()

            steps = before_steps(monkeypatch, begin_others)
            assert len(await store.search_sessions("zebra")) == 1
            for number, hits in enumerate(await asyncio.gather(*others)):
                assert len(hits) >= 2 + number
            assert len(steps) < len(others)

    asyncio.run(work())


def test_who_searches_goes_on_where_another_search_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await _fill(store, "a")
            all_wait = when_all_wait(monkeypatch)
            at_work: list[asyncio.Task[Any]] = []

            async def stay_at_it(step: int) -> None:
                if step == 0:
                    at_work.append(cast("asyncio.Task[Any]", asyncio.current_task()))
                    await asyncio.Event().wait()

            before_steps(monkeypatch, stay_at_it)
            searches = [asyncio.create_task(store.search_sessions("zebra")) for _ in range(MANY)]
            await all_wait.wait()
            at_work[0].cancel()
            found = await asyncio.gather(*searches, return_exceptions=True)
            assert sum(isinstance(hits, asyncio.CancelledError) for hits in found) == 1
            others = [hits for hits in found if not isinstance(hits, BaseException)]
            assert [_ids(hits) for hits in others] == [["a"] * 4] * (MANY - 1)

    asyncio.run(work())


def test_what_makes_one_search_fail_makes_all_fail_that_wait_for_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise each would wait by itself for a server that is silent."""

    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await _fill(store, "a")
            all_wait = when_all_wait(monkeypatch)

            async def fail(_: int) -> None:
                await all_wait.wait()
                raise StoreUnavailable("no longer there")

            steps = before_steps(monkeypatch, fail)
            found = await asyncio.gather(*(store.search_sessions("zebra") for _ in range(MANY)), return_exceptions=True)
            assert all(isinstance(error, StoreUnavailable) for error in found)
            assert len(steps) == 1
            monkeypatch.undo()
            assert len(await store.search_sessions("zebra")) == 4

    asyncio.run(work())
