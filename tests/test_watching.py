"""Watching a store: across processes, far behind, called off, and after it was closed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from faces import Face, Place
from statestore import (
    AsyncStateStore,
    CursorExpired,
    InvalidCursor,
    InvalidName,
    NotSupported,
    Session,
    StateStore,
    StoreClosed,
    UserMessage,
)
from statestore.engines.sqlite import SqliteEngine
from watched import check_who_is_far_behind_gets_what_is_theirs_at_once

RECORDS = 200

WRITER = """
import sys
from statestore import StateStore, UserMessage
with StateStore.open(sys.argv[1]) as store:
    for number in range(int(sys.argv[2])):
        store.append(f"s{number % 3}", UserMessage(f"message {number}"))
"""

WATCHER = """
import json, sys
from statestore import StateStore
url, after, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
told = []
with StateStore.open(url) as store:
    print("ready", flush=True)
    notices = store.watch(after=after or None)
    while len(told) < count:
        notice = next(notices)
        if notice.what == "record":
            told.append([notice.session_id, notice.seq, notice.record.content])
    notices.close()
print(json.dumps(told))
"""


def started(program: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.fixture(params=["sqlite", "files"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/state.db" if request.param == "sqlite" else f"file:{tmp_path}/state"


def test_watchers_in_other_processes_see_each_record_once(url: str) -> None:
    with StateStore.open(url) as store:
        for number in range(3):
            store.save_session(Session("alice", f"s{number}"))
        start = store.change_cursor()
    watchers = [started(WATCHER, url, start, str(RECORDS)) for _ in range(2)]
    try:
        for watcher in watchers:
            assert watcher.stdout is not None
            assert watcher.stdout.readline() == "ready\n"
        writer = started(WRITER, url, str(RECORDS))
        assert writer.communicate(timeout=60)[0] == ""
        assert writer.returncode == 0
        told = [json.loads(watcher.communicate(timeout=60)[0]) for watcher in watchers]
    finally:
        for watcher in watchers:
            watcher.kill()
            watcher.wait()
    for seen in told:
        by_session = [[entry for entry in seen if entry[0] == f"s{number}"] for number in range(3)]
        for number, entries in enumerate(by_session):
            expected = [[f"s{number}", place + 1, f"message {n}"] for place, n in enumerate(range(number, RECORDS, 3))]
            assert entries == expected


def test_who_is_too_far_behind_is_told(face: Face, tmp_path: Path) -> None:
    store = face.open(SqliteEngine(tmp_path / "state.db", changes_kept=10))
    store.save_session(Session("alice", "s"))
    old = store.change_cursor()
    for number in range(1010):  # old changes are removed every few hundred commits
        store.append("s", UserMessage(str(number)))
    with pytest.raises(CursorExpired):
        next(store.watch(after=old))
    with pytest.raises(CursorExpired):
        next(store.for_user("bob").watch("other", after=old))
    now = store.change_cursor()
    store.append("s", UserMessage("new"))
    (notice,) = islice(store.watch(after=now), 1)
    assert (notice.what, notice.seq) == ("record", 1011)


def test_who_is_not_too_far_behind_misses_nothing(face: Face, tmp_path: Path) -> None:
    store = face.open(SqliteEngine(tmp_path / "state.db", changes_kept=10))
    store.save_session(Session("alice", "s"))
    cursor = store.change_cursor()
    told: list[int | None] = []
    for number in range(0, 1100, 5):
        for step in range(5):
            store.append("s", UserMessage(str(number + step)))
        notices = list(islice(store.watch(after=cursor), 5))
        told += [notice.seq for notice in notices]
        cursor = notices[-1].cursor
    assert told == list(range(1, 1101))


def test_who_is_far_behind_in_a_busy_store_gets_what_is_theirs_at_once(url: str) -> None:
    asyncio.run(check_who_is_far_behind_gets_what_is_theirs_at_once(url))


def test_a_watch_begins_when_it_is_first_asked(store: StateStore, other: StateStore, place: Place) -> None:
    if place.kind == "memory":
        with pytest.raises(NotSupported, match="watch"):
            store.watch()
        return
    store.save_session(Session("alice", "s"))
    start = store.change_cursor()
    other.append("s", UserMessage("one"), UserMessage("two"))
    notices = store.watch(after=start)
    assert next(notices).seq == 1
    other.append("s", UserMessage("three"))
    assert [next(notices).seq for _ in range(2)] == [2, 3]
    notices.close()
    with pytest.raises(StopIteration):
        next(notices)
    assert other.append("s", UserMessage("four")) == [4]


@pytest.mark.parametrize("place", ["files", "sqlite"], indirect=True)
def test_a_watch_that_was_never_read_is_no_trouble(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    start = store.change_cursor()
    unread = store.watch("s", after=start)
    store.watch("s", after=start).close()
    assert store.append("s", UserMessage("one")) == [1]
    assert next(store.watch(after=start)).seq == 1
    store.close()
    with pytest.raises(StoreClosed):
        next(unread)


@pytest.mark.parametrize("after", [5, b"", object()])
def test_a_cursor_is_a_text(face: Face, tmp_path: Path, after: Any) -> None:
    store = face.open(tmp_path / "state.db")
    with pytest.raises(InvalidCursor):
        store.watch(after=after)


def test_a_session_id_is_checked_at_once(face: Face, tmp_path: Path) -> None:
    store = face.open(tmp_path / "state.db")
    with pytest.raises(InvalidName):
        store.watch("../up")


@pytest.mark.parametrize("place", ["files", "sqlite"], indirect=True)
def test_a_closed_store_is_not_watched(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    start = store.change_cursor()
    store.append("s", UserMessage("one"), UserMessage("two"))
    under_way = store.watch(after=start)
    assert next(under_way).seq == 1
    assert next(under_way).seq == 2
    store.close()
    with pytest.raises(StoreClosed):
        next(under_way)
    with pytest.raises(StoreClosed):
        store.watch()
    with pytest.raises(StoreClosed):
        store.change_cursor()


def test_a_cursor_of_another_store_is_refused(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "a.db") as one, StateStore.open(tmp_path / "b.db") as other:
        one.save_session(Session("alice", "s"))
        one.append("s", UserMessage("x"))
        with pytest.raises(InvalidCursor):
            next(other.watch(after=one.change_cursor()))


@pytest.mark.parametrize("name", ["state.db", "state"])
def test_a_watcher_can_be_called_off_and_the_store_closed(tmp_path: Path, name: str) -> None:
    async def watch(store: AsyncStateStore, start: str, told: asyncio.Queue[int | None]) -> None:
        async for notice in store.watch("s", after=start):
            told.put_nowait(notice.seq)

    async def run() -> None:
        async with AsyncStateStore.open(tmp_path / name) as store:
            await store.save_session(Session("alice", "s"))
            start = await store.change_cursor()
            told: list[asyncio.Queue[int | None]] = [asyncio.Queue() for _ in range(3)]
            tasks = [asyncio.create_task(watch(store, start, seen)) for seen in told]
            await store.append("s", UserMessage("one"))
            assert [await seen.get() for seen in told] == [1, 1, 1]
            for task in tasks:
                task.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                assert isinstance(outcome, asyncio.CancelledError)
            assert await store.append("s", UserMessage("two")) == [2]
            assert all(seen.empty() for seen in told)
            last = asyncio.create_task(watch(store, start, told[0]))
            assert [await told[0].get() for _ in range(2)] == [1, 2]
        with pytest.raises(StoreClosed):
            await last

    asyncio.run(run())


def test_a_watcher_in_the_loop_hears_of_another_process_soon(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/state.db"

    async def run() -> None:
        async with AsyncStateStore.open(url) as store:
            for number in range(3):
                await store.save_session(Session("alice", f"s{number}"))
            start = await store.change_cursor()
            writer = started(WRITER, url, "1")
            try:
                notice = await asyncio.wait_for(anext(aiter(store.watch(after=start))), timeout=30)
            finally:
                await asyncio.to_thread(writer.communicate)
            assert (notice.session_id, notice.seq, writer.returncode) == ("s0", 1, 0)

    asyncio.run(run())
