"""A write that was said to have failed does not happen afterwards, whatever kept the server from answering."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import asyncpg
import pytest
from postgres_hooks import run_in, said, schema_of, server_stopped, until_within

from servers.postgres import PostgresServer, sql
from statestore import AsyncStateStore, StateStore, StoreUnavailable, UserMessage
from statestore.conformance.changes import appended, created, user
from statestore.engine import GroupCommits, PutDocument
from statestore.engines.grouping import MOST
from statestore.engines.postgres.clocks import ServerClocks
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.writing import PORTION
from statestore.opening import engine_for


@asynccontextmanager
async def _locked(url: str, statement: str) -> AsyncGenerator[None]:
    """Somebody else holds a lock for as long as the block lasts."""
    connection = await asyncpg.connect(url.partition("?")[0])
    try:
        async with connection.transaction():
            await connection.execute(f"SET LOCAL search_path = {schema_of(url)}")
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


def _at_work(url: str) -> list[tuple[str]]:
    """What the server does for stores at the moment."""
    return sql(
        url.partition("?")[0],
        "SELECT query FROM pg_stat_activity WHERE application_name = 'statestore' AND state = 'active'",
    )


async def _until_idle(url: str) -> None:
    async with asyncio.timeout(60):
        while await asyncio.to_thread(_at_work, url):  # noqa: ASYNC110 - what is waited for happens at the server
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_plain", [True, False])
def test_what_waited_for_a_lock_when_it_failed_does_not_happen_when_the_lock_goes(url: str, is_plain: bool) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url.replace("timeout=20", "timeout=3")) as store:
            session = await store.get_or_create_session("alice", "s")
            session.add_user_message("once")
            if not is_plain:
                session.set_metadata("mood", "patient")
            async with _locked(url, "SELECT 1 FROM sessions FOR UPDATE"):
                for _ in until_within(1.5 * 3):
                    with pytest.raises(StoreUnavailable, match="did not answer within 3 s"):
                        await store.save_session(session)
            await _until_idle(url)
            assert run_in(url, "SELECT count(*) FROM records") == [(0,)]
            await store.save_session(session)
            assert run_in(url, "SELECT count(*) FROM records") == [(1,)]

    asyncio.run(work())


@pytest.mark.parametrize("is_plain", [True, False])
def test_one_locked_session_holds_up_nobody_else(url: str, is_plain: bool) -> None:
    names = [f"s{number}" for number in range(5)]

    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            for name in names:
                await store.get_or_create_session("alice", name)

            async def append(name: str) -> list[int]:
                return await store.append(name, UserMessage("one"), keys=None if is_plain else ["k"])

            async with _locked(url, "SELECT 1 FROM sessions WHERE id = 's0' FOR UPDATE"):
                locked, *free = [asyncio.create_task(append(name)) for name in names]
                assert await asyncio.gather(*free) == [[1]] * 4
                more = [asyncio.create_task(append("s0")) for _ in range(20)]
                await asyncio.gather(*(append(name) for name in names[1:]))
                assert await store.load_session("s1") is not None
                assert not any(task.done() for task in (locked, *more))
            told = await asyncio.gather(locked, *more)
            assert sorted(seq for (seq,) in told) == ([*range(1, 22)] if is_plain else [1] * 21)

    asyncio.run(work())


def test_only_what_is_locked_fails_and_the_rest_of_its_group_is_made(url: str) -> None:
    async def work() -> None:
        engine = engine_for(url.replace("timeout=20", "timeout=4"))
        await engine.open()
        await engine.commit([created("a"), created("b")])
        batches = [[appended(name, user(name))] for name in "aba"]
        async with _locked(url, "SELECT 1 FROM sessions WHERE id = 'a' FOR UPDATE"):
            first, second, third = await cast("GroupCommits", engine).commit_group(batches)
        assert isinstance(first, StoreUnavailable)
        assert isinstance(third, StoreUnavailable)
        assert isinstance(second, list)
        first, second, third = await cast("GroupCommits", engine).commit_group(batches)
        assert [outcome.seqs for (outcome,) in (first, second, third)] == [(1,), (2,), (2,)]  # type: ignore[misc]
        await engine.close()

    asyncio.run(work())


def test_what_a_silent_server_had_not_read_when_it_failed_does_not_happen_when_it_goes_on(
    own_server: PostgresServer,
) -> None:
    with StateStore.open(f"{own_server.url()}?schema=silent&timeout=2") as store:
        store.get_or_create_session("alice", "s")
        for turn in range(3):
            store.append("s", UserMessage(f"before {turn}"))
            before = _backends(own_server)
            with server_stopped(own_server), pytest.raises(StoreUnavailable):
                store.append("s", UserMessage("late"))
            asyncio.run(_until_gone(own_server, before))
        assert said(store, "s") == ["before 0", "before 1", "before 2"]


def _backends(server: PostgresServer) -> set[tuple[int]]:
    return set(server.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'statestore'"))


async def _until_gone(server: PostgresServer, backends: set[tuple[int]]) -> None:
    """Wait until connections have ended: so the server has read whatever was sent on them."""
    async with asyncio.timeout(60):
        while backends & await asyncio.to_thread(_backends, server):  # noqa: ASYNC110 - happens at the server
            await asyncio.sleep(0.01)


def test_a_clock_that_was_set_is_read_again_and_the_write_is_made(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    StateStore.open(url).close()
    run_in(url, "CREATE SEQUENCE readings", "SELECT 1")
    slow_at_first = "clock_timestamp() - interval '1 hour' * (nextval('readings') = 1)::integer"
    monkeypatch.setitem(SQL, "clock", f"SELECT extract(epoch FROM {slow_at_first})::double precision")
    with StateStore.open(url) as store:
        start = time.monotonic()
        store.get_or_create_session("alice", "s")
        assert store.append("s", UserMessage("one")) == [1]
        assert time.monotonic() - start < 15
    assert run_in(url, "SELECT last_value >= 2 FROM readings") == [(True,)]


def test_a_server_clock_is_told_as_it_is_or_a_little_early(url: str) -> None:
    async def work() -> None:
        connection = await asyncpg.connect(url.partition("?")[0])
        clock = asyncio.get_running_loop().time
        known = ServerClocks()
        for _ in range(3):
            shown = await known.at(connection, clock())
            really = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::double precision")
            assert really - 2 < shown <= really
        await connection.close()

    asyncio.run(work())


def test_calls_that_are_cancelled_leave_no_complaint_behind(url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(f"{url}&sslmode=prefer") as store:
            await store.get_or_create_session("alice", "s")
            for rounds in range(40):
                calls = [asyncio.create_task(store.load_session("s")) for _ in range(3)]
                for _ in range(rounds):
                    await asyncio.sleep(0)
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
            assert await store.load_session("s") is not None
        gc.collect()

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    assert caplog.records == []


def test_a_read_that_is_cancelled_ends_at_the_server_too(url: str) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            async with _locked(url, "LOCK sessions IN ACCESS EXCLUSIVE MODE"):
                call = asyncio.create_task(store.load_session("s"))
                await _until_waiting(url, 1)
                call.cancel()
                await asyncio.wait([call])
                await _until_waiting(url, 0)

    asyncio.run(work())


def test_a_call_that_an_administrator_breaks_off_is_told_so(url: str) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            async with _locked(url, "LOCK sessions IN ACCESS EXCLUSIVE MODE"):
                call = asyncio.create_task(store.load_session("s"))
                await _until_waiting(url, 1)
                run_in(
                    url,
                    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = 'statestore' AND wait_event_type = 'Lock'",
                )
                with pytest.raises(StoreUnavailable, match="broke the call off"):
                    await call
            assert await store.load_session("s") is None

    asyncio.run(work())


async def _until_waiting(url: str, count: int) -> None:
    waiting = (
        "SELECT 1 FROM pg_locks JOIN pg_class ON pg_class.oid = relation JOIN pg_namespace n ON n.oid = relnamespace "
        f"WHERE NOT granted AND nspname = '{schema_of(url)}'"
    )
    async with asyncio.timeout(60):
        while len(await asyncio.to_thread(sql, url.partition("?")[0], waiting)) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def test_a_check_of_a_store_whose_server_falls_silent_is_given_up_in_time(own_server: PostgresServer) -> None:
    with StateStore.open(f"{own_server.url()}?schema=checked&timeout=2") as store:
        store.get_or_create_session("alice", "s")
        with server_stopped(own_server):
            for _ in until_within(1.5 * 2):
                with pytest.raises(StoreUnavailable, match="did not answer within 2 s"):
                    store.check()
        assert store.check() == []


def test_a_check_may_take_longer_than_a_call(url: str) -> None:
    with StateStore.open(url) as store:
        for number in range(6):
            store.get_or_create_session("alice", f"s{number}")
    run_in(
        url,
        "ALTER TABLE metadata RENAME TO quick_metadata",
        "CREATE FUNCTION slowly() RETURNS boolean LANGUAGE plpgsql VOLATILE AS "
        "$$ BEGIN PERFORM pg_sleep(0.5); RETURN true; END $$",
        "ALTER TABLE records RENAME TO quick_records",
        "INSERT INTO quick_records SELECT id, 1, 0, '{}' FROM sessions",
        "CREATE VIEW records AS SELECT * FROM quick_records WHERE slowly()",
        "CREATE VIEW metadata AS SELECT * FROM quick_metadata",
        "SELECT 1",
    )
    with StateStore.open(url.replace("timeout=20", "timeout=4")) as store:
        start = time.monotonic()
        assert len(store.check()) >= 6
        assert time.monotonic() - start > 2 / 3 * 4, "or the test says nothing"


def test_a_store_with_many_connections_to_a_silent_server_is_closed_in_one_time(own_server: PostgresServer) -> None:
    async def work() -> None:
        engine = engine_for(f"{own_server.url()}?schema=closed&timeout=2")
        for _ in until_within(1.75 * 2):
            await engine.open()
            await asyncio.gather(*(engine.list_categories() for _ in range(10)))
            with server_stopped(own_server):
                await engine.close()

    asyncio.run(work())


def test_many_writers_to_a_silent_server_do_not_wait_one_after_the_other(own_server: PostgresServer) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(f"{own_server.url()}?schema=many&timeout=2") as store:
            await store.get_or_create_session("alice", "s")
            with server_stopped(own_server):
                for _ in until_within(3 * 2):  # a group may be begun just before its time is up
                    writing = [store.append("s", UserMessage(str(number))) for number in range(10 * MOST)]
                    results = await asyncio.gather(*writing, return_exceptions=True)
                    assert all(isinstance(result, StoreUnavailable) for result in results)

    asyncio.run(work())


def test_batches_that_are_too_much_for_one_statement_have_one_time_for_a_silent_server(
    own_server: PostgresServer,
) -> None:
    async def work() -> None:
        engine = engine_for(f"{own_server.url()}?schema=portions&timeout=2")
        await engine.open()
        batches = [[PutDocument("large", str(number), "bin", bytes(PORTION))] for number in range(6)]
        with server_stopped(own_server):
            for _ in until_within(1.75 * 2):
                results = await cast("GroupCommits", engine).commit_group(batches)
                assert all(isinstance(result, StoreUnavailable) for result in results)
        await engine.close()

    asyncio.run(work())
