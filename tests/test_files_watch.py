"""Watching a directory of files: every record comes once, whoever wrote it, and a cursor holds anywhere."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from faces import Face
from statestore import AgentResponse, CursorExpired, InvalidCursor, Session, StateStore, UserMessage
from statestore.engine import ChangePage
from statestore.engines.files import FilesEngine, following, image, noting
from statestore.seedform import text
from statestore.seedform.text import SessionText
from statestore.stored import StoredNotice

MOMENT = "2026-01-01T00:00:00Z"
LATER = "2026-01-02T00:00:00Z"
of_each_clock = pytest.mark.parametrize(
    ("unit", "later"),
    [(1, 15_000_000), (10**9, 900_000_000), (2 * 10**9, 2_015_000_000)],
    ids=["nanoseconds", "seconds", "every other second"],
)
"""What a file system counts its times in; and how long after such a time a write may still get the same one."""
T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives back that never suspends."""
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    return stopped.value.value


def told(notice: StoredNotice) -> tuple[Any, ...]:
    """A notice in short."""
    if notice.record is None:
        return (notice.what, notice.session_id) if notice.seq is None else (notice.what, notice.session_id, notice.seq)
    assert notice.seq == notice.record.seq
    return notice.session_id, notice.seq, msgspec.json.decode(notice.record.body)["content"]


class Watcher:
    """An engine of its own, and how far it has been told."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.engine = FilesEngine(str(directory), **options)
        run(self.engine.open())
        self.cursor = run(self.engine.change_cursor())

    def page(self, **options: Any) -> ChangePage:
        page = run(self.engine.read_changes(self.cursor, **options))
        self.cursor = page.cursor
        return page

    def take(self, **options: Any) -> list[tuple[Any, ...]]:
        """What happened since the last look."""
        found: list[tuple[Any, ...]] = []
        while True:
            before = self.cursor
            found += map(told, self.page(**options).notices)
            if self.cursor == before:
                return found

    def after(self, cursor: str, **options: Any) -> list[tuple[Any, ...]]:
        return list(map(told, run(self.engine.read_changes(cursor, **options)).notices))


@pytest.fixture
def watch(directory: Path) -> Iterator[Callable[..., Watcher]]:
    watchers: list[Watcher] = []

    def begin(**options: Any) -> Watcher:
        watchers.append(Watcher(directory, **options))
        return watchers[-1]

    yield begin
    for watcher in watchers:
        run(watcher.engine.close())


@pytest.fixture
def watcher(files_store: StateStore, watch: Callable[..., Watcher]) -> Watcher:
    """A watcher that began when `files_store` was still empty."""
    return watch()


def write_session(directory: Path, name: str, *contents: str, **changes: Any) -> Path:
    """Write a session file in place, as an editor would."""
    messages = [{"content": content, "timestamp": MOMENT} for content in contents]
    session: dict[str, Any] = {"id": name, "user_id": "alice", "user_messages": messages, "agent_responses": []}
    session |= {"created_at": MOMENT, "updated_at": MOMENT, "metadata": {}} | changes
    path = directory / "sessions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(session, indent=2), encoding="utf-8")
    wait_for_the_next_scan()
    return path


def wait_for_the_next_scan() -> None:
    """A write in place does not touch the directory: it is seen by the scan that is made anyway."""
    time.sleep(following.QUIET_SECONDS + 0.01)


@pytest.fixture(autouse=True)
def short_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 0.05)


# -- what happens is told


def test_a_new_session_its_records_and_its_end_are_told(files_store: StateStore, watcher: Watcher) -> None:
    session = Session("alice", "s")
    session.add_user_message("one")
    session.add_agent_response("two")
    files_store.save_session(session)
    assert watcher.take() == [("session", "s"), ("s", 1, "one"), ("s", 2, "two")]
    files_store.append("s", UserMessage("three"))
    assert watcher.take() == [("s", 3, "three")]
    assert watcher.take() == []
    files_store.delete_session("s")
    assert watcher.take() == [("deleted", "s")]
    assert watcher.take() == []


def test_fields_and_metadata_are_told_as_a_change_of_the_session(files_store: StateStore, watcher: Watcher) -> None:
    session = files_store.get_or_create_session("alice", "s")
    assert watcher.take() == [("session", "s")]
    session.set_metadata("title", "holiday")
    files_store.save_session(session)
    assert watcher.take() == [("session", "s")]
    session.set_active_seed("seed")
    session.add_user_message("one")
    files_store.save_session(session)
    assert watcher.take() == [("session", "s"), ("s", 1, "one")]
    before = watcher.cursor
    session.touch()
    files_store.save_session(session)
    assert watcher.take() == []
    assert watcher.cursor == before


def test_a_rewind_is_told_with_the_number_that_was_left(files_store: StateStore, watcher: Watcher) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", *(UserMessage(str(number)) for number in range(1, 6)))
    watcher.take()
    files_store.rewind_session("s", to=3)
    assert watcher.take() == [("rewound", "s", 3)]
    files_store.append("s", UserMessage("6"))
    assert watcher.take() == [("s", 6, "6")]
    files_store.rewind_session("s", to=1)
    files_store.append("s", UserMessage("7"))
    assert watcher.take() == [("rewound", "s", 1), ("s", 7, "7")]


def test_a_session_made_anew_is_another_one(files_store: StateStore, watcher: Watcher) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("old"))
    watcher.take()
    files_store.delete_session("s")
    files_store.get_or_create_session("bob", "s")
    files_store.append("s", UserMessage("new"))
    assert watcher.take() == [("deleted", "s"), ("session", "s"), ("s", 1, "new")]


def test_a_session_that_came_and_went_between_two_looks_is_told_as_deleted(
    files_store: StateStore, watcher: Watcher
) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("never seen"))
    files_store.delete_session("s")
    assert watcher.take() == [("deleted", "s")]


def test_a_session_made_anew_just_alike_is_another_one(
    files_store: StateStore, watcher: Watcher, directory: Path
) -> None:
    path = write_session(directory, "s", "one")
    whole = path.read_bytes()
    assert watcher.take() == [("session", "s"), ("s", 1, "one")]
    files_store.delete_session("s")
    path.write_bytes(whole)
    assert watcher.take() == [("deleted", "s"), ("session", "s"), ("s", 1, "one")]


def test_what_was_there_before_is_not_told(files_store: StateStore, watch: Callable[..., Watcher]) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("before"))
    watcher = watch()
    assert watcher.take() == []
    files_store.append("s", UserMessage("after"))
    assert watcher.take() == [("s", 2, "after")]


def test_every_record_comes_once_to_every_watcher(
    files_store: StateStore, face: Face, directory: Path, watch: Callable[..., Watcher]
) -> None:
    other = face.open(directory)
    watchers = [watch(), watch()]
    seen: list[list[tuple[Any, ...]]] = [[], []]
    files_store.get_or_create_session("alice", "s")
    expected: list[tuple[Any, ...]] = [("session", "s")]
    for number in range(1, 21):
        (files_store if number % 3 else other).append("s", UserMessage(str(number)))
        expected.append(("s", number, str(number)))
        if number % 2:
            seen[0] += watchers[0].take()
        if number % 5 == 0:
            seen[1] += watchers[1].take()
            other.list_sessions()
            files_store.search_sessions("anything")
    for watcher, found in zip(watchers, seen, strict=True):
        assert found + watcher.take() == expected


def test_watchers_that_look_at_the_same_moment_note_a_change_once(
    files_store: StateStore, watch: Callable[..., Watcher]
) -> None:
    watchers = [watch() for _ in range(4)]
    seen: list[list[tuple[Any, ...]]] = [[] for _ in watchers]
    is_done = threading.Event()
    failures: list[BaseException] = []

    def follow(watcher: Watcher, found: list[tuple[Any, ...]]) -> None:
        try:
            while not is_done.is_set():
                found += watcher.take()
            found += watcher.take()
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=follow, args=pair) for pair in zip(watchers, seen, strict=True)]
    for thread in threads:
        thread.start()
    for name in "ab":
        files_store.get_or_create_session("alice", name)
    for number in range(1, 41):
        for name in "ab":
            files_store.append(name, UserMessage(str(number)))
    is_done.set()
    for thread in threads:
        thread.join()
    assert not failures
    for found in seen:
        for name in "ab":
            records = [notice for notice in found if notice[0] == name]
            assert records == [(name, number, str(number)) for number in range(1, 41)]
        assert [notice for notice in found if len(notice) == 2] == [("session", "a"), ("session", "b")]


def test_another_process_is_watched_and_watches(files_store: StateStore, watcher: Watcher, directory: Path) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("one"))
    code = (
        "import sys; from itertools import islice; from statestore import StateStore, UserMessage\n"
        "with StateStore.open(sys.argv[1]) as store:\n"
        "    store.append('s', UserMessage('two'))\n"
        "    for notice in islice(store.watch(after=sys.argv[2]), 3):\n"
        "        print(notice.what, notice.seq, notice.record and notice.record.content)\n"
    )
    command = [sys.executable, "-c", code, str(directory), watcher.cursor]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout.splitlines(), done.stderr) == (["session None None", "record 1 one", "record 2 two"], "")
    assert watcher.take() == [("session", "s"), ("s", 1, "one"), ("s", 2, "two")]


def test_a_store_watches(directory: Path) -> None:
    with StateStore.open(directory) as store:
        cursor = store.change_cursor()
        store.get_or_create_session("alice", "s")
        store.append("s", UserMessage("one"), AgentResponse("two"))
        notices = list(islice(store.watch("s", after=cursor), 3))
        assert [(notice.what, notice.seq, notice.kind) for notice in notices] == [
            ("session", None, None),
            ("record", 1, "user"),
            ("record", 2, "agent"),
        ]
        assert notices[2].record == store.load_session("s").agent_responses[0]  # type: ignore[union-attr]


# -- cursors


def test_a_cursor_holds_in_the_middle_of_a_change_and_in_another_process(
    files_store: StateStore, watcher: Watcher, watch: Callable[..., Watcher]
) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", *(UserMessage(str(number)) for number in range(1, 6)))
    files_store.append("s", UserMessage("6"))
    watch().take()
    files_store.append("s", UserMessage("7"))
    records = [notice for notice in watcher.page().notices if notice.what == "record"]
    assert [notice.seq for notice in records] == [1, 2, 3, 4, 5, 6, 7]
    other = watch()
    for notice in records:
        assert notice.seq is not None
        assert other.after(notice.cursor) == [("s", seq, str(seq)) for seq in range(notice.seq + 1, 8)]


def test_a_page_ends_about_where_it_is_asked_to(files_store: StateStore, watcher: Watcher) -> None:
    for number in range(10):
        files_store.get_or_create_session("alice", f"s{number}")
        files_store.append(f"s{number}", UserMessage("one"))
    found: list[tuple[Any, ...]] = []
    while page := watcher.page(limit=3).notices:
        assert len(page) <= 4
        found += map(told, page)
    assert len(found) == 20
    assert len(set(found)) == 20
    files_store.append("s0", *(UserMessage(str(number)) for number in range(2, 12)))
    pages: list[list[tuple[Any, ...]]] = []
    while page := watcher.page(limit=4).notices:
        pages.append(list(map(told, page)))
    assert [len(page) for page in pages] == [4, 4, 2]
    assert [notice for page in pages for notice in page] == [("s0", number, str(number)) for number in range(2, 12)]


def test_one_session_or_one_user_can_be_watched(files_store: StateStore, watcher: Watcher) -> None:
    begun = watcher.cursor
    for name, user_id in (("a", "alice"), ("b", "bob")):
        files_store.get_or_create_session(user_id, name)
        files_store.append(name, UserMessage(name))
    watcher.take()
    assert watcher.after(begun, session_id="a") == [("session", "a"), ("a", 1, "a")]
    assert watcher.after(begun, user_id="bob") == [("session", "b"), ("b", 1, "b")]
    assert watcher.after(begun, user_id="bob", session_id="a") == []
    files_store.delete_session("b")
    assert watcher.take(user_id="alice") == []
    assert watcher.after(begun, user_id="bob") == [("deleted", "b")]


@pytest.mark.parametrize("cursor", ["", "nonsense", "ff", b"a:1".hex(), b"a:x:0".hex(), b"a:-1:0".hex(), "é"])
def test_what_is_no_cursor_is_refused(cursor: str, watcher: Watcher) -> None:
    with pytest.raises(InvalidCursor):
        run(watcher.engine.read_changes(cursor))


def test_a_cursor_from_the_future_is_refused(watcher: Watcher) -> None:
    identity = bytes.fromhex(watcher.cursor).decode().partition(":")[0]
    with pytest.raises(InvalidCursor):
        run(watcher.engine.read_changes(f"{identity}:5:0".encode().hex()))


@pytest.mark.parametrize("damage", ["deleted", "garbage", "rebuilt by another"])
def test_a_cursor_of_a_log_that_is_gone_has_expired(
    damage: str, files_store: StateStore, watcher: Watcher, directory: Path, watch: Callable[..., Watcher]
) -> None:
    files_store.get_or_create_session("alice", "s")
    assert watcher.take() == [("session", "s")]
    for path in (directory / ".statestore").glob("changes.db*"):
        path.unlink()
    if damage == "garbage":
        (directory / ".statestore" / "changes.db").write_bytes(b"garbage" * 1000)
    if damage == "rebuilt by another":
        watch()
    wait_for_the_next_scan()
    files_store.append("s", UserMessage("one"))
    with pytest.raises(CursorExpired):
        watcher.take()
    watcher.cursor = run(watcher.engine.change_cursor())
    files_store.append("s", UserMessage("two"))
    assert watcher.take() == [("s", 2, "two")]


def test_a_cursor_of_a_log_that_notes_what_is_not_in_the_files_has_expired(
    files_store: StateStore, watcher: Watcher, directory: Path
) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("one"))
    files_store.change_cursor()
    connection = sqlite3.connect(directory / ".statestore" / "changes.db")
    connection.executescript("UPDATE marks SET marks = x'00000000'")
    connection.close()
    with pytest.raises(CursorExpired):
        watcher.take()
    watcher.cursor = run(watcher.engine.change_cursor())
    files_store.append("s", UserMessage("two"))
    assert watcher.take() == [("s", 2, "two")]


def test_a_log_lost_while_others_remember_the_files_tells_nothing_twice(
    files_store: StateStore, watcher: Watcher, directory: Path, watch: Callable[..., Watcher]
) -> None:
    for number in range(5):
        files_store.get_or_create_session("alice", f"s{number}")
    watcher.take()
    for path in (directory / ".statestore").glob("changes.db*"):
        path.unlink()
    files_store.append("s0", UserMessage("one"))
    with pytest.raises(CursorExpired):
        watcher.take()
    late = watch()
    files_store.append("s1", UserMessage("two"))
    assert late.take() == [("s1", 1, "two")]


def test_a_cursor_older_than_what_is_kept_has_expired(
    files_store: StateStore, watcher: Watcher, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noting, "CHANGES_KEPT", 5)
    files_store.get_or_create_session("alice", "s")
    other = watch()
    cursors = [other.cursor]
    for number in range(1, 9):
        files_store.append("s", UserMessage(str(number)))
        other.take()
        cursors.append(other.cursor)
    for cursor in cursors[:3]:
        with pytest.raises(CursorExpired):
            watcher.after(cursor)
    assert watcher.after(cursors[3]) == [("s", number, str(number)) for number in range(4, 9)]


# -- programs that know nothing of us


def test_a_file_of_another_program_its_growth_and_its_end_are_told(watcher: Watcher, directory: Path) -> None:
    path = write_session(directory, "s", "one")
    assert watcher.take() == [("session", "s"), ("s", 1, "one")]
    write_session(directory, "s", "one", "two", updated_at=LATER)
    assert watcher.take() == [("s", 2, "two")]
    path.unlink()
    assert watcher.take() == [("deleted", "s")]


def test_a_rewrite_is_told_from_where_it_begins(watcher: Watcher, directory: Path) -> None:
    write_session(directory, "s", "one", "two", "three")
    watcher.take()
    write_session(directory, "s", "one", "zwei", "three")
    assert watcher.take() == [("rewound", "s", 1), ("s", 2, "zwei"), ("s", 3, "three")]
    write_session(directory, "s", "eins")
    assert watcher.take() == [("rewound", "s", 0), ("s", 1, "eins")]
    write_session(directory, "s")
    assert watcher.take() == [("rewound", "s", 0)]


def test_a_file_laid_out_otherwise_is_still_the_same(watcher: Watcher, directory: Path) -> None:
    path = write_session(directory, "s", "one", "two", metadata={"a": 1.5, "b": {"c": [1], "d": None}})
    watcher.take()
    session = json.loads(path.read_text())
    session["metadata"] = {"b": {"d": None, "c": [1]}, "a": 1.5}
    path.write_text(json.dumps(session))
    wait_for_the_next_scan()
    assert watcher.take() == []


def test_what_was_rewritten_again_before_it_was_told_is_told_once(
    watcher: Watcher, directory: Path, watch: Callable[..., Watcher]
) -> None:
    write_session(directory, "s", "one", "two")
    other = watch()
    write_session(directory, "s", "one", "zwei")
    assert other.take() == [("rewound", "s", 1), ("s", 2, "zwei")]
    write_session(directory, "s", "one", "deux", "trois")
    assert watcher.take() == [
        ("session", "s"),
        ("s", 1, "one"),
        ("rewound", "s", 1),
        ("rewound", "s", 1),
        ("s", 2, "deux"),
        ("s", 3, "trois"),
    ]


def test_what_is_rewritten_after_the_scan_is_told_by_the_next_one(
    watcher: Watcher, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(directory, "s", "one", "two")
    watcher.take()
    write_session(directory, "s", "one", "two", "three")
    original = following.ChangeLog.catch_up

    def overtaken(*arguments: Any) -> Any:
        state = original(*arguments)
        write_session(directory, "s", "one", "zwei", "drei")
        return state

    monkeypatch.setattr(following.ChangeLog, "catch_up", overtaken)
    assert watcher.page().notices == []
    monkeypatch.setattr(following.ChangeLog, "catch_up", original)
    wait_for_the_next_scan()
    assert watcher.take() == [("rewound", "s", 1), ("s", 2, "zwei"), ("s", 3, "drei")]


@pytest.mark.parametrize("meanwhile", [b"", b'{"id": "s"', None], ids=["empty", "cut", "gone"])
def test_what_cannot_be_read_for_a_moment_after_the_scan_is_told_when_it_can(
    meanwhile: bytes | None, watcher: Watcher, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(directory, "r", "first")
    path = write_session(directory, "s", "one", "two")
    whole = path.read_bytes()
    original = following.ChangeLog.catch_up

    def overtaken(*arguments: Any) -> Any:
        state = original(*arguments)
        path.unlink() if meanwhile is None else path.write_bytes(meanwhile)
        return state

    monkeypatch.setattr(following.ChangeLog, "catch_up", overtaken)
    first = list(map(told, watcher.page().notices))
    monkeypatch.setattr(following.ChangeLog, "catch_up", original)
    path.write_bytes(whole)
    wait_for_the_next_scan()
    assert sorted(first + watcher.take()) == [
        *[("r", 1, "first"), ("s", 1, "one"), ("s", 2, "two")],
        *[("session", "r"), ("session", "s")],
    ]


def test_a_response_stamped_earlier_changes_places_and_is_told_as_a_rewrite(watcher: Watcher, directory: Path) -> None:
    write_session(directory, "s", "one")
    watcher.take()
    response = {"content": "zero", "timestamp": "2025-12-31T00:00:00Z"}
    write_session(directory, "s", "one", agent_responses=[response])
    assert watcher.take() == [("rewound", "s", 0), ("s", 1, "zero"), ("s", 2, "one")]


def test_a_file_that_makes_no_sense_for_a_while_loses_nothing(watcher: Watcher, directory: Path) -> None:
    path = write_session(directory, "s", "one", "two")
    write_session(directory, "t", "other")
    watcher.take()
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    wait_for_the_next_scan()
    assert watcher.take() == [("rewound", "s", 0)]
    path.write_bytes(whole)
    wait_for_the_next_scan()
    assert watcher.take() == [("s", 1, "one"), ("s", 2, "two")]


@of_each_clock
def test_a_write_within_a_tick_of_the_clock_is_not_missed(
    unit: int, later: int, watcher: Watcher, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(directory, "s", "first")
    moment = time.time_ns() // unit * unit
    os.utime(path, ns=(moment, moment))
    monkeypatch.setattr(time, "time_ns", lambda: moment + later)
    assert ("s", 1, "first") in watcher.take()
    write_session(directory, "s", "later")
    os.utime(path, ns=(moment, moment))
    assert watcher.take() == [("rewound", "s", 0), ("s", 1, "later")]


@of_each_clock
def test_a_directory_touched_twice_within_a_tick_of_the_clock_is_looked_at_again(
    unit: int,
    later: int,
    files_store: StateStore,
    watcher: Watcher,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 60)
    files_store.get_or_create_session("alice", "first")
    moment = time.time_ns() // unit * unit
    os.utime(directory / "sessions", ns=(moment, moment))
    monkeypatch.setattr(time, "time_ns", lambda: moment + later)
    assert watcher.take() == [("session", "first")]
    files_store.get_or_create_session("alice", "later")
    os.utime(directory / "sessions", ns=(moment, moment))
    assert watcher.take() == [("session", "later")]


@of_each_clock
def test_a_file_that_makes_no_sense_is_understood_when_it_is_mended_within_a_tick_of_the_clock(
    unit: int, later: int, watcher: Watcher, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(directory, "s", "one")
    watcher.take()
    whole = path.read_bytes()
    moment = time.time_ns() // unit * unit
    monkeypatch.setattr(time, "time_ns", lambda: moment + later)
    for body, expected in ((whole[:-1] + b"?", [("rewound", "s", 0)]), (whole, [("s", 1, "one")])):
        path.write_bytes(body)
        os.utime(path, ns=(moment, moment))
        wait_for_the_next_scan()
        assert watcher.take() == expected


# -- what it costs


def test_nothing_is_opened_and_nothing_parsed_while_nothing_happens(
    files_store: StateStore, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 60)
    for number in range(5):
        files_store.get_or_create_session("alice", f"s{number}")
    time.sleep(0.05)
    assert len(watcher.take()) == 5
    work: list[str] = []
    for owner, name in ((SessionText, "__init__"), (os, "scandir"), (following.LogFile, "use")):
        original: Any = getattr(owner, name)

        def noting(*arguments: Any, _original: Any = original, _name: str = name, **options: Any) -> Any:
            work.append(_name)
            return _original(*arguments, **options)

        monkeypatch.setattr(owner, name, noting)
    for _ in range(10):
        assert watcher.take() == []
    assert work == []
    files_store.append("s3", UserMessage("one"))
    work.clear()
    assert watcher.take() == [("s3", 1, "one")]
    assert work.count("__init__") == 1  # only what changed


def test_a_scan_without_changes_parses_nothing(
    files_store: StateStore, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        files_store.get_or_create_session("alice", f"s{number}")
    time.sleep(0.05)
    assert len(watcher.take()) == 5
    parsed: list[Any] = []
    monkeypatch.setattr(SessionText, "__init__", lambda *arguments: parsed.append(arguments))
    for _ in range(3):
        wait_for_the_next_scan()
        assert watcher.take() == []
    assert parsed == []


def test_files_that_are_more_than_is_kept_are_parsed_once_for_the_first_look(
    files_store: StateStore, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "KEPT_BYTES", 1)
    monkeypatch.setattr(following, "BYTES_A_STEP", 1)
    for name in "abcd":
        files_store.get_or_create_session("alice", name)
    parsed: list[str] = []
    parse = SessionText.__init__

    def counted(found: SessionText, *arguments: Any) -> None:
        parse(found, *arguments)
        parsed.append(found.id)

    monkeypatch.setattr(SessionText, "__init__", counted)
    watch()
    assert sorted(parsed) == list("abcd")


def test_pages_of_a_backlog_scan_the_directory_once(
    files_store: StateStore, watcher: Watcher, watch: Callable[..., Watcher], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "QUIET_SECONDS", 0)
    for number in range(20):
        files_store.get_or_create_session("alice", f"s{number}")
    other = watch()  # it notes all of them
    scans: list[Any] = []
    differences = following.differences

    def counted(*arguments: Any) -> Any:
        scans.append(arguments)
        return differences(*arguments)

    monkeypatch.setattr(following, "differences", counted)
    pages = [watcher.page(limit=2) for _ in range(9)]
    assert [len(page.notices) for page in pages] == [2] * 9
    assert scans == []
    assert len(watcher.take(limit=2)) == 2
    assert scans
    assert watcher.cursor == other.cursor


def test_the_page_that_ends_a_backlog_tells_of_what_nobody_noted_yet(
    files_store: StateStore, watcher: Watcher, watch: Callable[..., Watcher]
) -> None:
    files_store.get_or_create_session("alice", "noted")
    watch()
    files_store.get_or_create_session("alice", "new")
    assert list(map(told, watcher.page().notices)) == [("session", "noted"), ("session", "new")]


def test_pages_of_one_long_change_put_the_session_in_order_once(
    files_store: StateStore, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", *(UserMessage(str(number)) for number in range(60)))
    numbered: list[Any] = []
    numbering_of = text.numbering_of

    def counted(*arguments: Any) -> Any:
        numbered.append(arguments)
        return numbering_of(*arguments)

    monkeypatch.setattr(text, "numbering_of", counted)
    assert [seq for name, seq, *_ in watcher.take(limit=5) if name == "s"] == list(range(1, 61))
    assert len(numbered) == 1


# -- where nothing may be written


def test_a_store_that_is_only_read_is_watched_in_memory(
    files_store: StateStore, directory: Path, watch: Callable[..., Watcher]
) -> None:
    files_store.get_or_create_session("alice", "s")
    reading = watch(read_only=True)
    files_store.append("s", UserMessage("one"))
    assert reading.take() == [("s", 1, "one")]
    files_store.rewind_session("s", to=0)
    assert reading.take() == [("rewound", "s", 0)]
    files_store.delete_session("s")
    assert reading.take() == [("deleted", "s")]
    assert not list((directory / ".statestore").glob("changes.db*"))
    with pytest.raises(CursorExpired):
        watch(read_only=True).after(reading.cursor)


def test_a_directory_without_sessions_is_watched_from_the_start(directory: Path, watch: Callable[..., Watcher]) -> None:
    watcher = watch()
    assert watcher.take() == []
    with StateStore.open(directory) as store:
        store.get_or_create_session("alice", "s")
    assert watcher.take() == [("session", "s")]
