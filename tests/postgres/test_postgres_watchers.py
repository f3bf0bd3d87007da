"""Many watchers of one process: they share what they read, and each is told what it would be told alone."""

from __future__ import annotations

import asyncio
import time
from typing import cast

import pytest
from postgres_hooks import hold_answers, know_all_writers, note_statements, server_stopped

from servers.postgres import PostgresServer
from statestore import AsyncStateStore, StoreUnavailable, UserMessage
from statestore.conformance.changes import appended, created, user
from statestore.engine import ChangePage, Engine, Wakes, Watches
from statestore.opening import engine_for

MANY = 40


async def _opened(url: str) -> tuple[Engine, Watches, str]:
    """An engine, the same as one that watches, and a cursor: after it there is a record in "s", and one in "other"."""
    engine = engine_for(url)
    await engine.open()
    watches = cast("Watches", engine)
    await engine.commit([created("s"), created("other")])
    start = await watches.change_cursor()
    await engine.commit([appended("s", user("one"))])
    await engine.commit([appended("other", user("one"))])
    return engine, watches, start


def _records(page: ChangePage) -> list[tuple[str, int | None]]:
    return [(notice.session_id, notice.seq) for notice in page.notices if notice.what == "record"]


def test_many_watchers_that_are_equally_far_take_as_few_round_trips_as_one(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        engine, watches, start = await _opened(url)
        noted = note_statements(monkeypatch)
        pages = await asyncio.gather(*(watches.read_changes(start, session_id=f"w{n}") for n in range(MANY)))
        assert noted == ["changes"]
        assert [page.notices for page in pages] == [[]] * MANY
        (cursor,) = {page.cursor for page in pages}
        await cast("Wakes", engine).wait_for_changes(cursor, 0.001)  # the first one has to be connected for
        noted.clear()
        await asyncio.gather(*(cast("Wakes", engine).wait_for_changes(cursor, 0.001) for _ in range(MANY)))
        assert noted == ["watch"]
        noted.clear()
        pages = await asyncio.gather(*(watches.read_changes(start) for _ in range(MANY)))
        assert noted[0] == "changes"
        assert noted.count("added_records") == len(noted) - 1 <= 2  # whoever read for all is a step ahead of them
        assert [_records(page) for page in pages] == [[("s", 1), ("other", 1)]] * MANY
        await engine.close()

    asyncio.run(work())


def test_watchers_that_read_together_are_each_told_what_they_asked_for(url: str) -> None:
    async def work() -> None:
        engine, watches, start = await _opened(url)
        first = await watches.read_changes(start, limit=1)
        pages = await asyncio.gather(
            watches.read_changes(start, session_id="s"),
            watches.read_changes(start, session_id="other"),
            watches.read_changes(start, user_id="nobody"),
            watches.read_changes(start, limit=1),
            watches.read_changes(first.cursor),
            watches.read_changes(start),
        )
        one, other = ("s", 1), ("other", 1)
        assert [_records(page) for page in pages] == [[one], [other], [], [one], [other], [one, other]]
        await engine.close()

    asyncio.run(work())


def test_an_append_takes_as_many_round_trips_however_many_watch_other_sessions(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_all_writers(monkeypatch)

    async def work(watchers: int) -> int:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            noted = note_statements(monkeypatch)
            watching = [asyncio.create_task(anext(store.watch(f"w{n}"))) for n in range(watchers)]
            while "watch" not in noted:  # noqa: ASYNC110 - until they sleep
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            noted.clear()
            for number in range(5):
                naps = noted.count("watch")
                await store.append("s", UserMessage(str(number)))
                while noted.count("watch") == naps:  # noqa: ASYNC110 - until they sleep again
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0.1)
            for watch in watching:
                watch.cancel()
            await asyncio.wait(watching)
            return len(noted)

    assert asyncio.run(work(MANY)) < 5 * asyncio.run(work(1))


def test_what_is_acknowledged_while_others_read_is_told_to_who_asks_then(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        engine, watches, start = await _opened(url)
        is_read, may_go = hold_answers(monkeypatch, "changes")
        early = asyncio.create_task(watches.read_changes(start))
        await is_read.wait()
        await engine.commit([appended("s", user("two"))])
        late = asyncio.create_task(watches.read_changes(start))
        await asyncio.sleep(0)
        may_go.set()
        assert _records(await early) == [("s", 1), ("other", 1)]
        assert _records(await late) == [("s", 1), ("other", 1), ("s", 2)]
        await engine.close()

    asyncio.run(work())


def test_a_watcher_that_is_cancelled_while_it_reads_for_others_leaves_them_to_read(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        engine, watches, start = await _opened(url)
        is_read, may_go = hold_answers(monkeypatch, "changes")
        reading = [asyncio.create_task(watches.read_changes(start)) for _ in range(MANY)]
        await is_read.wait()
        reading[0].cancel()
        await asyncio.wait(reading[:1])
        may_go.set()
        pages = await asyncio.gather(*reading[1:])
        assert [_records(page) for page in pages] == [[("s", 1), ("other", 1)]] * (MANY - 1)
        await engine.close()

    asyncio.run(work())


def test_many_watchers_of_a_silent_server_do_not_wait_one_after_the_other(own_server: PostgresServer) -> None:
    async def work() -> float:
        engine, watches, start = await _opened(f"{own_server.url()}?schema=watchers&timeout=1")
        with server_stopped(own_server):
            began = time.monotonic()
            reading = [asyncio.create_task(watches.read_changes(start)) for _ in range(MANY)]
            await asyncio.sleep(0.1)
            reading += [asyncio.create_task(watches.read_changes(start)) for _ in range(MANY)]
            results = await asyncio.gather(*reading, return_exceptions=True)
            took = time.monotonic() - began
        assert all(isinstance(result, StoreUnavailable) for result in results)
        await engine.close()
        return took

    assert asyncio.run(work()) < MANY / 2
