"""Watching while transactions overtake each other: everything is told, once, and in the order of its session."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest
from postgres_hooks import append_through, connected, cut_connections, drop_schema, know_all_writers, run_in

from statestore import CursorExpired, StateStore, StateStoreError, UserMessage
from statestore.conformance.changes import appended, created, user
from statestore.engine import Engine, Wakes, Watches
from statestore.engines.postgres import watching
from statestore.engines.postgres.engine import PostgresEngine
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.waking import BLINK, LATENESS
from statestore.engines.telling import Moment
from statestore.opening import engine_for
from watched import check_who_is_far_behind_gets_what_is_theirs_at_once


async def _told(engine: Engine, after: str) -> tuple[list[tuple[str, int | None]], str]:
    page = await cast("Watches", engine).read_changes(after)
    return [(notice.session_id, notice.seq) for notice in page.notices if notice.what == "record"], page.cursor


@asynccontextmanager
async def _two_watchers(url: str) -> AsyncGenerator[tuple[Engine, Engine, str]]:
    """Two engines, a session ``s``, and a cursor that has seen it."""
    engine, other = engine_for(url), engine_for(url)
    await engine.open()
    await other.open()
    await engine.commit([created("s")])
    yield engine, other, await cast("Watches", engine).change_cursor()
    await other.close()
    await engine.close()


@pytest.mark.parametrize("is_made", [True, False])
def test_what_is_overtaken_is_told_later_and_not_left_out(url: str, is_made: bool) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        await engine.commit([created("slow"), created("fast")])
        start = await cast("Watches", engine).change_cursor()
        async with connected(url) as connection:
            slow = connection.transaction()
            await slow.start()
            await append_through(connection, appended("slow", user("one")))
            await engine.commit([appended("fast", user("one"))])
            told, cursor = await _told(engine, start)
            assert (told, cursor) == ([], start), "the one before it may still happen"
            present = await cast("Watches", engine).change_cursor()
            await (slow.commit() if is_made else slow.rollback())
        expected = [("slow", 1), ("fast", 1)] if is_made else [("fast", 1)]
        assert (await _told(engine, cursor))[0] == expected
        assert set(expected) - {("fast", 1)} <= set((await _told(engine, present))[0])
        await engine.close()

    asyncio.run(work())


def test_what_was_acknowledged_before_a_cursor_was_asked_for_is_not_told_after_it(url: str) -> None:
    """Though another transaction is under way, and may still come before it."""

    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        await engine.commit([created("slow"), created("fast")])
        async with connected(url) as connection:
            async with connection.transaction():
                await append_through(connection, appended("slow", user("one")))
                await engine.commit([appended("fast", user("acknowledged"))])
                asking = asyncio.create_task(cast("Watches", engine).change_cursor())
                await asyncio.wait([asking], timeout=0.2)
            cursor = await asking
        await engine.commit([appended("fast", user("later"))])
        assert (await _told(engine, cursor))[0] == [("fast", 2)]
        await engine.close()

    asyncio.run(work())


def test_a_cursor_from_before_what_is_kept_has_expired(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    start = store.change_cursor()
    for number in range(10):
        store.append("s", UserMessage(f"m{number}"))
    middle = store.change_cursor()
    store.append("s", UserMessage("last"))
    run_in(url, "SELECT tidy_up(5)")
    with pytest.raises(CursorExpired):
        next(store.watch(after=start))
    notices = store.watch(after=middle)
    assert next(notices).seq == 11


def test_what_is_overtaken_is_told_and_found_although_changes_after_it_were_to_be_forgotten(
    url: str, store: StateStore
) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        await engine.commit([created("slow"), created("fast")])
        assert store.search_sessions("zebra") == []
        async with connected(url) as connection:
            async with connection.transaction():
                await append_through(connection, appended("slow", user("zebra")))
                for number in range(10):
                    await engine.commit([appended("fast", user(f"horse {number}"))])
                run_in(url, "SELECT tidy_up(3)")
                cursor = await cast("Watches", engine).change_cursor()
                assert store.search_sessions("zebra") == []
            assert ("slow", 1) in (await _told(engine, cursor))[0]
        await engine.close()

    asyncio.run(work())
    assert [hit.session_id for hit in store.search_sessions("zebra")] == ["slow"]
    run_in(url, "SELECT tidy_up(3)")
    assert run_in(url, "SELECT count(*) FROM changes") == [(3,)]


def test_records_whose_changes_are_forgotten_while_they_are_read_are_not_left_out_in_silence(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = _after_ten_changes(store)
    is_wanted = watching._is_wanted  # pyright: ignore[reportPrivateUsage]

    def forget_and_look(*row: Any) -> bool:
        run_in(url, "SELECT tidy_up(3)")
        return is_wanted(*row)

    monkeypatch.setattr(watching, "_is_wanted", forget_and_look)
    with pytest.raises(CursorExpired):
        next(store.watch(after=start))


def _after_ten_changes(store: StateStore) -> str:
    """The cursor before them."""
    store.get_or_create_session("alice", "s")
    start = store.change_cursor()
    for number in range(10):
        store.append("s", UserMessage(f"m{number}"))
    return start


def test_who_is_far_behind_in_a_busy_store_gets_what_is_theirs_at_once(url: str) -> None:
    asyncio.run(check_who_is_far_behind_gets_what_is_theirs_at_once(url))


def test_a_cursor_of_another_store_has_expired(store: StateStore, url: str) -> None:
    with StateStore.open(url.replace("schema=", "schema=other_")) as other:
        cursor = other.change_cursor()
    drop_schema(url.replace("schema=", "schema=other_"))
    with pytest.raises(CursorExpired):
        next(store.watch(after=cursor))


def test_writers_tell_only_while_somebody_watches(url: str) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        heard: list[str] = []
        async with connected(url) as connection:
            (identity,) = await connection.fetchrow("SELECT identity FROM store")
            await connection.add_listener(f"statestore_{identity}", lambda *told: heard.append(told[2]))
            await engine.commit([created("s")])
            await connection.execute("SELECT 1")
            assert heard == []
            cursor = await cast("Watches", engine).change_cursor()
            await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
            await engine.commit([appended("s", user("one"))])
            await connection.execute("SELECT 1")
            assert len(heard) == 1
        await engine.close()

    asyncio.run(work())


@pytest.mark.parametrize("is_cut", [False, True])
def test_who_waits_is_woken_by_another_process_at_once(url: str, monkeypatch: pytest.MonkeyPatch, is_cut: bool) -> None:
    know_all_writers(monkeypatch)

    async def work() -> None:
        async with _two_watchers(url) as (engine, other, cursor):
            await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
            if is_cut:
                await asyncio.to_thread(cut_connections, url)
            waiting = asyncio.create_task(cast("Wakes", engine).wait_for_changes(cursor, 60))
            done, _ = await asyncio.wait([waiting], timeout=0.3)
            assert not done or is_cut, "nothing happened yet"
            await other.commit([appended("s", user("one"))])
            await asyncio.wait_for(waiting, 15)
            assert (await _told(engine, cursor))[0] == [("s", 1)]

    asyncio.run(work())


def test_who_joins_others_that_watch_does_not_rely_on_being_told_at_once(url: str) -> None:
    """A writer that was under way when the first of them began tells nobody."""

    async def work() -> None:
        async with _two_watchers(url) as (engine, other, cursor):
            async with connected(url) as connection, connection.transaction():
                await append_through(connection, appended("s", user("one")))
                await cast("Wakes", other).wait_for_changes(cursor, 0.001)
                await asyncio.wait_for(cast("Wakes", engine).wait_for_changes(cursor, 60), 15)
            assert (await _told(engine, cursor))[0] == [("s", 1)]

    asyncio.run(work())


@pytest.fixture
def passing_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets so many seconds pass, by the clock of the loop that runs."""

    def pass_by(seconds: float) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time() + seconds
        monkeypatch.setattr(loop, "time", lambda: now)

    return pass_by


async def _longest_wait(engine: Engine, cursor: str) -> float:
    waking = cast("PostgresEngine", engine)._waking  # pyright: ignore[reportPrivateUsage]
    return await waking.longest_wait(Moment.parse(cursor))


def test_however_long_a_writer_takes_that_does_not_tell_it_is_looked_for_soon(
    url: str, passing_time: Callable[[float], None]
) -> None:
    """It was under way when the first one began to watch. The longer that is ago, the less often it is looked for."""

    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        await engine.commit([created("s")])
        cursor = await cast("Watches", engine).change_cursor()
        async with connected(url) as connection, connection.transaction():
            await append_through(connection, appended("s", user("one")))
            passing_time(0)
            waits = [await _longest_wait(engine, cursor)]
            for seconds in (3, 5, 12):
                passing_time(seconds)
                waits.append(await _longest_wait(engine, cursor))
            assert waits == [BLINK, 3 * LATENESS, 8 * LATENESS, 20 * LATENESS]
        assert await _longest_wait(engine, cursor) == 0.0
        assert (await _told(engine, cursor))[0] == [("s", 1)]
        await engine.close()

    asyncio.run(work())


def test_who_watches_sleeps_as_soon_as_all_writers_tell(url: str, passing_time: Callable[[float], None]) -> None:
    async def work() -> None:
        async with _two_watchers(url) as (engine, other, cursor):
            passing_time(0)
            for watcher in (engine, other):
                waits = [await _longest_wait(watcher, cursor)]
                while waits[-1] == BLINK and len(waits) < 500:  # the server may be at something of its own
                    waits.append(await _longest_wait(watcher, cursor))
                assert waits == [*[BLINK] * (len(waits) - 1), 20]
                assert len(waits) > 1

    asyncio.run(work())


def test_who_could_not_ask_which_writers_are_under_way_asks_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        await engine.commit([created("s")])
        cursor = await cast("Watches", engine).change_cursor()
        await _longest_wait(engine, cursor)
        async with connected(url) as connection:
            await connection.execute("UPDATE watched SET until = '-infinity'")
            await connection.execute("BEGIN")
            await append_through(connection, appended("s", user("one")))
            with monkeypatch.context() as patch, pytest.raises(StateStoreError):
                patch.setitem(SQL, "latest_transaction", "SELECT 1 / 0")
                await _longest_wait(engine, cursor)
            assert await _longest_wait(engine, cursor) == BLINK
        await engine.close()

    asyncio.run(work())


def test_who_is_cancelled_while_it_begins_to_listen_leaves_no_connection(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    is_begun = asyncio.Event()

    async def begin_and_stay(connection: Any, *_: object) -> None:
        begun.append(connection)
        is_begun.set()
        await asyncio.Event().wait()

    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        cursor = await cast("Watches", engine).change_cursor()
        monkeypatch.setattr(asyncpg.Connection, "add_listener", begin_and_stay)
        waiting = asyncio.create_task(cast("Wakes", engine).wait_for_changes(cursor, 60))
        await is_begun.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        assert [connection.is_closed() for connection in begun] == [True]
        await engine.close()

    asyncio.run(work())


def test_a_listening_connection_that_was_lost_is_not_kept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listening: list[weakref.ref[Any]] = []
    add_listener = asyncpg.Connection.add_listener

    async def note_and_add(connection: Any, *listener: Any) -> None:
        listening.append(weakref.ref(connection))
        await add_listener(connection, *listener)

    monkeypatch.setattr(asyncpg.Connection, "add_listener", note_and_add)

    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        cursor = await cast("Watches", engine).change_cursor()
        for _ in range(3):
            await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
            await asyncio.to_thread(cut_connections, url)
            while not listening[-1]().is_closed():  # noqa: ASYNC110 - until the loop has heard of it
                await asyncio.sleep(0.01)
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)
        gc.collect()
        assert [lost() is None for lost in listening] == [True, True, True, False]
        await engine.close()

    asyncio.run(work())


def test_closing_does_not_wait_for_who_waits(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    know_all_writers(monkeypatch)

    async def work() -> None:
        engine = engine_for(url.replace("timeout=20", "timeout=100"))
        await engine.open()
        cursor = await cast("Watches", engine).change_cursor()
        waiting = asyncio.create_task(cast("Wakes", engine).wait_for_changes(cursor, 100))
        await asyncio.sleep(0)
        await asyncio.wait_for(engine.close(), 30)
        await asyncio.wait_for(waiting, 30)

    asyncio.run(work())
