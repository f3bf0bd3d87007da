"""Connections that are cut, and servers that restart: everything is stored once, and nobody hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from postgres_hooks import cut_connections, run_in, said

from servers.postgres import PostgresServer, running_server
from statestore import AsyncStateStore, StateStore, StoreUnavailable, UserMessage
from statestore.conformance.changes import appended, created, user
from statestore.engine import Engine, GroupCommits, PreconditionFailed, Requires
from statestore.engines.postgres.pool import Pool
from statestore.engines.postgres.statements import SQL
from statestore.opening import engine_for


class _Writers:
    """Eight tasks that write into one session until they are told to stop."""

    def __init__(self, store: AsyncStateStore) -> None:
        self._store = store
        self._is_over = False
        self._written = 0
        self._tasks = [asyncio.create_task(self._write(f"w{n}")) for n in range(8)]

    async def _write(self, writer: str) -> list[int]:
        numbers: list[int] = []
        while not self._is_over:
            numbers += await self._store.append("shared", UserMessage(f"{writer}:{len(numbers)}"))
            self._written += 1
        return numbers

    async def wrote(self, more: int) -> None:
        """Wait until they have written this much more."""
        enough = self._written + more
        while self._written < enough:  # noqa: ASYNC110 - what is waited for happens at the server
            await asyncio.sleep(0.01)

    async def stop(self) -> list[list[int]]:
        """The numbers that each of them was told."""
        self._is_over = True
        return await asyncio.gather(*self._tasks)


def _check_all_there(url: str, told: list[list[int]]) -> None:
    with StateStore.open(url) as store:
        found = [(entry.seq, entry.record.content) for entry in store.timeline("shared")]  # type: ignore[union-attr]
        expected = [f"w{writer}:{turn}" for writer, numbers in enumerate(told) for turn in range(len(numbers))]
        assert sorted(word for _, word in found) == sorted(expected)
        for writer, numbers in enumerate(told):
            assert [seq for seq, word in found if word.startswith(f"w{writer}:")] == numbers
        assert store.check() == []


def test_all_connections_are_cut_again_and_again_and_each_message_is_there_once(url: str) -> None:
    async def work() -> list[list[int]]:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "shared")
            writers = _Writers(store)
            cuts = 0
            while cuts < 7:  # now and then there is none at that moment
                await writers.wrote(50)
                cuts += await asyncio.to_thread(cut_connections, url)
            await writers.wrote(50)
            return await writers.stop()

    _check_all_there(url, asyncio.run(work()))


class _Cut:
    """Loses the connection right after the server made a statement, before its answer arrives."""

    def __init__(self, connection: Any, lose: list[str]) -> None:
        self._connection = connection
        self._lose = lose

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetchval(self, query: str, *values: Any) -> Any:
        result = await self._connection.fetchval(query, *values)
        if self._lose and query.startswith(self._lose[0]):
            del self._lose[0]
            self._connection.terminate()
            raise ConnectionResetError("the answer was lost")
        return result


def _losing(monkeypatch: pytest.MonkeyPatch, *statements: str) -> list[str]:
    """Have the answers to the next such statements lost."""
    lose = list(statements)
    ours = Pool._idle_one  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(Pool, "_idle_one", lambda pool: _wrapped(ours(pool), lose))
    return lose


def _wrapped(connection: Any, lose: list[str]) -> Any:
    return None if connection is None else _Cut(connection, lose) if not isinstance(connection, _Cut) else connection


@pytest.mark.parametrize("statement", ["append_to_sessions", "make_batches"])
def test_a_commit_whose_answer_is_lost_has_its_first_outcome(
    url: str, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    async def work(engine: Engine) -> None:
        await engine.open()
        await engine.commit([created("s", user("one"))])
        lose = _losing(monkeypatch, SQL[statement])
        change = appended("s", user("two"), user("three", key=None if statement == "append_to_sessions" else "k"))
        (outcome,) = await engine.commit([change])
        assert not lose
        assert outcome.seqs == (2, 3)
        stored = await engine.read_session("s")
        assert stored is not None
        assert stored.version == outcome.version
        assert [record.seq for record in stored.records.in_order()] == [1, 2, 3]
        lose.append(SQL[statement])
        with pytest.raises(PreconditionFailed):
            await engine.commit([appended("s", user("no"), requires=Requires(version="0" * 16))])
        await engine.close()

    asyncio.run(work(engine_for(url)))


def test_a_commit_whose_answer_is_lost_is_not_said_to_have_failed_nor_made_again(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = "BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END"

    async def work(engine: Engine) -> None:
        await engine.open()
        await engine.commit([created("a"), created("b")])
        run_in(
            url,
            f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${full}$$",
            "CREATE TRIGGER fail BEFORE UPDATE ON tokens FOR EACH ROW EXECUTE FUNCTION fail()",
            "SELECT 1",
        )
        lose = _losing(monkeypatch, SQL["append_to_sessions"])
        batches = [[appended(name, user("once"))] for name in "ab"]
        for result in await cast("GroupCommits", engine).commit_group(batches):
            assert isinstance(result, StoreUnavailable)
            assert "the answer was lost; then: could not extend file" in str(result)
            assert "nothing was written" not in str(result)
        assert not lose
        await engine.close()

    asyncio.run(work(engine_for(url)))
    assert run_in(url, "SELECT id, count(*) FROM records GROUP BY id ORDER BY id") == [("a", 1), ("b", 1)]


def test_an_outcome_is_kept_for_an_hour_and_not_for_ever(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("one"))
    assert run_in(url, "SELECT count(*) FROM tokens") == [(2,)]
    run_in(url, "UPDATE tokens SET made = made - interval '59 minutes'", "SELECT tidy_up(1000)")
    assert run_in(url, "SELECT count(*) FROM tokens") == [(2,)]
    run_in(url, "UPDATE tokens SET made = made - interval '2 minutes'", "SELECT tidy_up(1000)")
    assert run_in(url, "SELECT count(*) FROM tokens") == [(0,)]
    assert said(store, "s") == ["one"]


def test_a_server_restarts_under_load_and_each_message_is_there_once(own_server: PostgresServer) -> None:
    url = f"{own_server.url()}?schema=restarted"

    async def work() -> list[list[int]]:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "shared")
            writers = _Writers(store)
            for mode in ("fast", "immediate"):
                await writers.wrote(100)
                await asyncio.to_thread(own_server.stop, mode)
                await asyncio.to_thread(own_server.start)
            await writers.wrote(100)
            return await writers.stop()

    _check_all_there(url, asyncio.run(work()))


def test_a_server_that_is_reached_by_its_socket_is_waited_for_while_it_restarts(socket: Path) -> None:
    """It takes its socket away when it ends, so that there is nothing to connect to."""
    with running_server(f"unix_socket_directories={socket}") as server:
        access = server.data / "pg_hba.conf"
        access.write_text("local all all trust\n" + access.read_text())
        server.sql("SELECT pg_reload_conf()")

        async def work() -> None:
            async with AsyncStateStore.open(f"postgresql://keeper@/postgres?host={socket}&port={server.port}") as store:
                await store.get_or_create_session("alice", "s")
                await asyncio.to_thread(server.stop)
                writing = asyncio.create_task(store.append("s", UserMessage("one")))
                await asyncio.to_thread(server.start)
                assert await writing == [1]

        asyncio.run(work())


@pytest.fixture
def socket() -> Iterator[Path]:
    """A directory that a server may put its socket into, with a name that is short enough for one."""
    with TemporaryDirectory() as place:
        Path(place).chmod(0o777)
        yield Path(place)
