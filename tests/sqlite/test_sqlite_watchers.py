"""Many watchers in an event loop: one look is enough for all of them, and only those read whom a change concerns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

import pytest
from sqlite_hooks import raw, wreck

from statestore import AsyncStateStore, CursorExpired, Notice, StateStore, StateStoreError, StoreClosed, UserMessage
from statestore.conformance.watching import HISTORY
from statestore.engine import Changed, ChangePage
from statestore.engines.sqlite import SqliteEngine
from statestore.engines.sqlite.statements import SQL
from statestore.host import LONGEST_PAUSE

MANY = 300


class Counting(SqliteEngine):
    """Counts looks, and notes from where changes are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, durability="relaxed")
        self.looks = 0
        self.read_from: list[str] = []
        self.is_held = False
        self.may_look = threading.Event()
        self.may_look.set()

    async def changed_since(self, after: str) -> Changed:
        self.looks += 1
        if not self.may_look.is_set():
            self.is_held = True
            assert self.may_look.wait(30)
            self.is_held = False
        return await super().changed_since(after)

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        self.read_from.append(after)
        return await super().read_changes(after, session_id=session_id, user_id=user_id, limit=limit)

    async def some_looks(self) -> None:
        """Until somebody has looked who did not look yet when this was called."""
        seen = self.looks
        await _until(lambda: self.looks >= seen + 2)


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - it comes to be in other threads
        await asyncio.sleep(0.01)


Told = asyncio.Queue[Notice]


class Watchers:
    """Tasks that watch."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []

    def watch(self, store: AsyncStateStore, session_id: str | None = None, user_id: str | None = None) -> Told:
        """Another one; what it is told."""
        told = Told()

        async def work() -> None:
            async for notice in (store if user_id is None else store.for_user(user_id)).watch(session_id):
                told.put_nowait(notice)

        self.tasks.append(asyncio.create_task(work()))
        return told

    async def call_off(self) -> None:
        """End all of them."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@asynccontextmanager
async def _watched(database: Path) -> AsyncIterator[tuple[Counting, AsyncStateStore, Watchers]]:
    engine, watchers = Counting(database), Watchers()
    async with AsyncStateStore.open(engine) as store:
        yield engine, store, watchers
        await watchers.call_off()


async def _asleep(engine: Counting, readers: int) -> None:
    """Until so many have found nothing to read, and sleep."""
    await _until(lambda: len(engine.read_from) >= readers)
    await engine.some_looks()


@pytest.mark.parametrize("count", [1, MANY])
def test_watchers_that_are_told_nothing_look_as_often_as_one(count: int, database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            for number in range(count):
                watchers.watch(store, f"s{number}", "alice")
            await _asleep(engine, count)
            looks, began = engine.looks, asyncio.get_running_loop().time()
            await asyncio.sleep(10 * LONGEST_PAUSE)
            took = asyncio.get_running_loop().time() - began
            assert 1 <= engine.looks - looks <= took / LONGEST_PAUSE + 6  # after a change, the first looks come sooner
            assert len(engine.read_from) == count

    asyncio.run(work())


@pytest.mark.parametrize("is_by_session", [True, False], ids=["a-session-each", "a-user-each"])
def test_an_append_is_read_by_those_whom_it_concerns(is_by_session: bool, database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            for number in range(MANY):
                await store.get_or_create_session(f"user{number}", f"s{number}")
            told = [
                watchers.watch(store, f"s{number}") if is_by_session else watchers.watch(store, None, f"user{number}")
                for number in range(MANY)
            ]
            await _asleep(engine, MANY)
            engine.read_from.clear()
            for number in (0, 7, MANY - 1):
                now = await store.change_cursor()
                await engine.some_looks()
                await store.append(f"s{number}", UserMessage("hello"))
                assert (await told[number].get()).session_id == f"s{number}"
                assert engine.read_from[0] == now  # what concerned others lies behind it
                await _asleep(engine, 2)
                assert len(engine.read_from) == 2  # with one that finds no more
                engine.read_from.clear()
            assert all(queue.empty() for queue in told)

    asyncio.run(work())


def test_everybody_is_told_everything_once_whatever_each_one_watches(database: Path) -> None:
    users, rounds = ["alice", "bob", "carol"], 40
    sessions = [f"{user}-{number}" for user in users for number in range(2)]

    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            for name in sessions:
                await store.get_or_create_session(name.partition("-")[0], name)
            wanted: list[tuple[Told, Callable[[str], bool]]] = [(watchers.watch(store), lambda _: True)]
            wanted += [(watchers.watch(store, name), lambda told, name=name: told == name) for name in sessions]
            wanted += [
                (watchers.watch(store, None, user), lambda told, user=user: told.startswith(user)) for user in users
            ]
            wanted += [(watchers.watch(store, sessions[0], "bob"), lambda _: False)]
            await _asleep(engine, len(wanted))

            async def write(name: str) -> None:
                for _ in range(rounds):
                    await store.append(name, UserMessage("hello"))
                    await asyncio.sleep(0.003)

            await asyncio.gather(*map(write, sessions))
            for told, is_wanted in wanted:
                expected = {name: list(range(1, rounds + 1)) for name in sessions if is_wanted(name)}
                heard: dict[str, list[int | None]] = {}
                for _ in range(rounds * len(expected)):
                    notice = await asyncio.wait_for(told.get(), 30)
                    heard.setdefault(notice.session_id, []).append(notice.seq)
                assert heard == expected
                assert told.empty()

    asyncio.run(work())


@pytest.mark.parametrize("is_looking", [False, True])
def test_when_the_one_that_looks_is_called_off_another_one_does(is_looking: bool, database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            await store.get_or_create_session("alice", "s")
            watchers.watch(store, "s")
            await _asleep(engine, 1)
            told = [watchers.watch(store, "s") for _ in range(5)]
            await _asleep(engine, 6)
            if is_looking:
                engine.may_look.clear()
                await _until(lambda: engine.is_held)
            watchers.tasks[0].cancel()
            await asyncio.sleep(0)
            engine.may_look.set()
            await asyncio.wait(watchers.tasks[:1])
            watchers.tasks[1].cancel()
            await store.append("s", UserMessage("hello"))
            assert [(await asyncio.wait_for(queue.get(), 30)).seq for queue in told[1:]] == [1] * 4

    asyncio.run(work())


def test_when_nobody_waits_nobody_looks(database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            for _ in range(3):
                watchers.watch(store)
            await _asleep(engine, 3)
            await watchers.call_off()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            looks = engine.looks
            await asyncio.sleep(3 * LONGEST_PAUSE)
            assert engine.looks == looks

    asyncio.run(work())


@pytest.mark.parametrize("error", [StoreClosed, CursorExpired])
def test_what_is_wrong_is_told_to_everybody_who_waits(error: type[StateStoreError], database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            for number in range(30):
                watchers.watch(store, f"s{number}")
            await _asleep(engine, 30)
            if error is StoreClosed:
                await store.close()
            else:
                wreck(database, "UPDATE identity SET id = 'another'")
            outcomes = await asyncio.wait_for(asyncio.gather(*watchers.tasks, return_exceptions=True), 30)
            assert [type(outcome) for outcome in outcomes] == [error] * 30

    asyncio.run(work())


def test_each_loop_looks_for_its_own_watchers(database: Path) -> None:
    async def work() -> None:
        async with _watched(database) as (engine, store, watchers):
            await store.get_or_create_session("alice", "s")
            told = watchers.watch(store, "s")
            elsewhere = asyncio.create_task(asyncio.to_thread(asyncio.run, _first(store)))
            await _asleep(engine, 2)
            await store.append("s", UserMessage("hello"))
            assert (await asyncio.wait_for(told.get(), 30)).seq == (await elsewhere).seq == 1

    async def _first(store: AsyncStateStore) -> Notice:
        return await asyncio.wait_for(anext(store.watch("s")), 30)

    asyncio.run(work())


def test_whoever_would_be_told_something_is_pointed_out(database: Path) -> None:
    async def work() -> None:
        engine = SqliteEngine(database)
        await engine.open()
        cursors = [await engine.change_cursor()]
        for change in HISTORY:
            await engine.commit([change])
            cursors.append(await engine.change_cursor())
            for cursor in cursors:
                changed = await engine.changed_since(cursor)
                assert changed.cursor == cursors[-1]
                told = (await engine.read_changes(cursor)).notices
                assert {notice.session_id for notice in told} <= changed.sessions
                for user_id in ("alice", "bob"):
                    assert user_id in changed.users or not (await engine.read_changes(cursor, user_id=user_id)).notices
        assert await engine.changed_since(cursors[-1]) == Changed(frozenset(), frozenset(), cursors[-1])
        await engine.close()

    asyncio.run(work())


@pytest.mark.parametrize("statement", ["changes_kept", "changes"])
def test_a_look_is_as_small_however_many_changes_are_kept(statement: str, database: Path) -> None:
    async def work() -> None:
        async with AsyncStateStore.open(database):
            pass

    asyncio.run(work())
    with raw(database) as connection:
        arguments = {"after": 1, "session_id": None, "user_id": None, "limit": 1}
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + SQL[statement], arguments)]
    assert any("SEARCH changes" in step for step in plan)
    assert not any("SCAN changes" in step for step in plan)


def test_a_damaged_record_hides_no_other_one_from_watchers(
    database: Path, store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    for session_id in ("bad", "good"):
        store.get_or_create_session("alice", session_id)
    cursor = store.change_cursor()
    store.append("bad", UserMessage("one"), UserMessage("two"))
    store.append("good", UserMessage("three"))
    with raw(database) as connection:
        connection.execute("UPDATE records SET body = 'garbage' WHERE body LIKE '%one%'")
    watch = store.watch(after=cursor)
    assert [(notice.session_id, notice.seq) for notice in islice(watch, 2)] == [("bad", 2), ("good", 1)]
    watch.close()
    assert "watchers are not told of record 1: session bad" in caplog.text
