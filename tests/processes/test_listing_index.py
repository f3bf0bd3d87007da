"""Listing reads a session file once, until it changes; and notices every change."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dying
import pytest
import rust_program
from bad_bytes import session_text

import contestants
from children import fresh_interpreter, together, together_each
from statestore import Session, StateStore, StoreUnavailable, UserMessage
from statestore.seedform.text import SessionText

MANY = 5_000
LONG_AGO_NS = 1_600_000_000_000_000_000
SECOND_NS = 1_000_000_000

of_each_clock = pytest.mark.parametrize(
    ("unit", "later"),
    [(1, 15_000_000), (10**9, 900_000_000), (2 * 10**9, 2_015_000_000)],
    ids=["nanoseconds", "seconds", "every other second"],
)
"""What a file system counts its times in; and how long after such a time a write may still get the same one."""


class Parsed:
    """How many session files were parsed since the last look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._count = 0
        original = SessionText.__init__

        def counted(text: SessionText, *arguments: Any) -> None:
            self._count += 1
            original(text, *arguments)

        monkeypatch.setattr(SessionText, "__init__", counted)

    def take(self) -> int:
        count, self._count = self._count, 0
        return count


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Parsed]:
    yield Parsed(monkeypatch)
    monkeypatch.undo()


def _fill(root: Path, count: int) -> None:
    """Session files as the Rust program left them, some time ago."""
    text = session_text("ID")
    (root / "sessions").mkdir(parents=True)
    for number in range(count):
        session_id = f"session-{number:04}"
        path = root / "sessions" / f"{session_id}.json"
        path.write_bytes(text.replace(b'"ID"', f'"{session_id}"'.encode()))
        os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS + number))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "state"
    _fill(root, MANY)
    return root


def test_five_thousand_sessions_are_parsed_once(many: Path, parsed: Parsed) -> None:
    with StateStore.open(many) as store:
        first = store.list_sessions()
        assert len(first) == MANY
        assert parsed.take() == MANY
        assert store.list_sessions() == first
        assert store.count_sessions() == MANY
        assert len(store.list_sessions(limit=50)) == 50
        assert len(store.list_sessions(order="id", after=first[0].cursor, limit=10)) == 10
        assert parsed.take() == 0
    with StateStore.open(many) as store:
        assert store.list_sessions() == first
        assert parsed.take() == 0
    assert fresh_interpreter(Path(__file__).with_name("count_parsed.py"), str(many)) == {"listed": MANY, "parsed": 0}

    files = sorted(path.name for path in (many / ".statestore").iterdir())
    with StateStore.open(many, read_only=True) as store:
        assert store.list_sessions() == first
        assert len(store.list_sessions(limit=50)) == 50
        assert parsed.take() == 0, "who only reads uses the index that others left"
    assert sorted(path.name for path in (many / ".statestore").iterdir()) == files

    rust_program.say(many, "session-0042", "more")
    with StateStore.open(many) as store:
        again = store.list_sessions()
        assert parsed.take() == 1
        assert {summary.id for summary in set(again) - set(first)} == {"session-0042"}
        assert again[0].id == "session-0042"
        assert again[0].message_count == 2

    for path in (many / ".statestore").glob("index.db*"):
        path.unlink()
    with StateStore.open(many) as store:
        assert store.list_sessions() == again
        assert parsed.take() == MANY
        store.list_sessions()
        assert parsed.take() == 0


def test_a_session_that_went_and_one_that_came_are_both_noticed(root: Path, parsed: Parsed) -> None:
    _fill(root, 5)
    with StateStore.open(root) as store:
        store.list_sessions()
        (root / "sessions" / "session-0003.json").rename(root / "sessions" / "session-0005.json")
        rust_program.write(root / "sessions" / "session-0005.json", session_text("session-0005"))
        expected = [f"session-{number:04}" for number in (0, 1, 2, 4, 5)]
        for _ in range(2):
            assert [summary.id for summary in store.list_sessions(order="id")] == expected
        store.delete_session("session-0000")
        store.get_or_create_session("alice", "session-0006")
        expected = [*expected[1:], "session-0006"]
        for _ in range(2):
            assert [summary.id for summary in store.list_sessions(order="id")] == expected
    with StateStore.open(root) as store:
        assert [summary.id for summary in store.list_sessions(order="id")] == expected


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_processes_that_build_the_index_at_once_all_list_everything(start_method: str, root: Path) -> None:
    _fill(root, 300)
    listings = together(start_method, contestants.list_once, [(str(root),)] * 4)
    expected = [[f"session-{number:04}", 1] for number in range(300)]
    for listing in listings:
        assert json.loads(json.dumps(listing)) == expected


def _rewritten(path: Path, text: bytes) -> None:
    """Write in place, as an editor may; then make it look as if nothing had happened, as a coarse clock may."""
    status = path.stat()
    path.write_bytes(text)
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert path.stat().st_ino == status.st_ino


@of_each_clock
def test_a_file_rewritten_within_a_tick_of_the_clock_is_not_missed(
    unit: int, later: int, root: Path, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sessions").mkdir()
    path = root / "sessions" / "one.json"
    path.write_bytes(session_text("one", metadata={"title": "first"}))
    moment = path.stat().st_mtime_ns // unit * unit
    os.utime(path, ns=(moment, moment))
    monkeypatch.setattr(time, "time_ns", lambda: moment + later)
    for title in ("first", "later", "again"):
        _rewritten(path, session_text("one", metadata={"title": title}))
        assert store.list_sessions()[0].title == title


@pytest.fixture
def seconds_only(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """While the test lasts, times are set as on a file system that keeps whole seconds."""
    original = os.utime

    def cut(path: Any, *, ns: tuple[int, int]) -> None:
        original(path, ns=(ns[0] // SECOND_NS * SECOND_NS, ns[1] // SECOND_NS * SECOND_NS))

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", cut)
        yield


@pytest.mark.usefixtures("seconds_only")
def test_where_whole_seconds_are_kept_a_young_file_is_read_again_and_an_old_one_is_not(
    root: Path, store: StateStore, parsed: Parsed, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "one")
    moment = (root / "sessions" / "one.json").stat().st_mtime_ns
    assert moment % SECOND_NS == 0
    for age, expected in ((0, 1), (SECOND_NS, 1), (3 * SECOND_NS, 0), (4 * SECOND_NS, 0)):
        monkeypatch.setattr(time, "time_ns", lambda age=age: moment + age)
        parsed.take()
        assert [summary.id for summary in store.list_sessions()] == ["one"]
        assert parsed.take() == expected, age


def test_a_file_listed_while_it_was_young_is_not_read_for_ever(
    root: Path, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "one")
    store.list_sessions()
    written = (root / "sessions" / "one.json").stat().st_mtime_ns
    while time.time_ns() - written < 60_000_000:
        store.list_sessions()
    store.list_sessions()  # the one that finds it grown up
    opened: list[Any] = []
    original = os.open

    def noting(path: Any, *arguments: Any, **options: Any) -> int:
        opened.append(path)
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", noting)
    assert len(store.list_sessions()) == 1
    monkeypatch.undo()
    assert "one.json" not in opened


@pytest.mark.parametrize("content", [b"", b"nonsense", None], ids=["empty", "nonsense", "being written"])
def test_who_only_reads_goes_without_an_index_that_cannot_be_used_and_leaves_it(
    content: bytes | None, root: Path
) -> None:
    _fill(root, 5)
    with StateStore.open(root) as store:
        expected = store.list_sessions()
    index = root / ".statestore" / "index.db"
    if content is None:
        Path(f"{index}-wal").write_bytes(b"somebody's")
    else:
        index.write_bytes(content)
    before = {path: path.read_bytes() for path in index.parent.glob("index.db*")}
    with StateStore.open(root, read_only=True) as store:
        assert store.list_sessions() == expected
        assert store.list_sessions(limit=2) == expected[:2]
    assert {path: path.read_bytes() for path in index.parent.glob("index.db*")} == before


def test_a_session_that_could_not_be_read_for_a_moment_is_listed_again(root: Path) -> None:
    _fill(root, 20)
    expected = [f"session-{number:04}" for number in range(20)]
    with StateStore.open(root) as store:
        for nth in range(1, 30):
            for path in (root / ".statestore").glob("index.db*"):
                path.unlink()
            with StateStore.open(root) as other:
                dying.fail_at(nth, ("open",), errno.EMFILE)
                with suppress(StoreUnavailable):
                    other.list_sessions()
                dying.restore()
                assert [summary.id for summary in other.list_sessions(order="id")] == expected
            with StateStore.open(root) as fresh:
                assert [summary.id for summary in fresh.list_sessions(order="id")] == expected
        assert [summary.id for summary in store.list_sessions(order="id")] == expected


def test_a_listing_after_a_save_shows_what_was_saved(store: StateStore) -> None:
    for turn in range(1, 40):
        store.get_or_create_session("alice", f"s{turn % 5}")
        store.append(f"s{turn % 5}", UserMessage(str(turn)))
        assert store.list_sessions()[0].id == f"s{turn % 5}"
        counts = {summary.id: summary.message_count for summary in store.list_sessions()}
        assert sum(counts.values()) == turn


def test_sessions_written_while_others_list_are_all_listed_in_the_end(root: Path, store: StateStore) -> None:
    work: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (contestants.save_sessions, (str(root), "A", 100)),
        (contestants.save_sessions, (str(root), "B", 100)),
        (contestants.list_until_done, (str(root), 2)),
        (contestants.list_until_done, (str(root), 2)),
    ]
    *_, first, second = together_each("fork", work)
    expected = sorted(f"{writer}-{number}" for writer in "AB" for number in range(100))
    assert sorted(first) == sorted(second) == expected
    assert sorted(summary.id for summary in store.list_sessions()) == expected


def test_the_index_of_a_store_opened_for_reading_is_left_as_it_is(root: Path) -> None:
    _fill(root, 5)
    with StateStore.open(root) as store:
        store.list_sessions()
        store.save_session(Session("alice", "new"))
    index = root / ".statestore" / "index.db"
    before = index.stat().st_mtime_ns, index.read_bytes()
    with StateStore.open(root, read_only=True) as store:
        assert len(store.list_sessions()) == 6
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


@pytest.mark.parametrize("way", ["link", "directory"])
def test_what_takes_the_place_of_a_session_that_was_listed_while_it_was_young_does_not_stop_a_listing(
    way: str, root: Path, store: StateStore
) -> None:
    store.get_or_create_session("alice", "other")
    store.get_or_create_session("alice", "one")
    assert len(store.list_sessions()) == 2
    path = root / "sessions" / "one.json"
    written = path.stat().st_mtime_ns
    path.unlink()
    path.symlink_to("elsewhere") if way == "link" else path.mkdir()
    while time.time_ns() - written < 60_000_000:
        pass
    for _ in range(2):
        assert [summary.id for summary in store.list_sessions()] == ["other"]
    with StateStore.open(root) as another:
        assert [summary.id for summary in another.list_sessions()] == ["other"]


def test_who_only_reads_lists_what_changed_since_the_index_was_written_however_many_there_are(root: Path) -> None:
    _fill(root, 600)
    with StateStore.open(root) as store:
        store.list_sessions()
    rust_program.say(root, "session-0042", "more")
    with StateStore.open(root, read_only=True) as store:
        newest = store.list_sessions()[0]
        assert (newest.id, newest.message_count) == ("session-0042", 2)


def _before_the_second_connection(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something when a listing has looked at the files, and is about to read from the index what it has of them."""
    original = sqlite3.connect
    connections = 0

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        nonlocal connections
        connections += 1
        if connections == 2:
            monkeypatch.undo()
            act()
        return original(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)


@pytest.fixture
def listed(root: Path, store: StateStore) -> StateStore:
    """A store of six sessions, all in the index."""
    _fill(root, 6)
    assert len(store.list_sessions()) == 6
    return store


def test_pages_hold_a_session_once_though_another_one_is_written_and_listed_meanwhile(
    root: Path, listed: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_and_list() -> None:
        listed.append("session-0002", UserMessage("more"))
        assert listed.list_sessions()[0].id == "session-0002"

    with StateStore.open(root) as store:
        _before_the_second_connection(monkeypatch, write_and_list)
        seen: list[str] = []
        page = store.list_sessions(limit=3)
        while page:
            seen += [summary.id for summary in page]
            page = store.list_sessions(limit=3, after=page[-1].cursor)
    assert sorted(seen) == [f"session-{number:04}" for number in range(6)]


def test_a_session_that_is_deleted_while_others_list_does_not_cost_the_index(
    root: Path, listed: StateStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def delete_and_list() -> None:
        listed.delete_session("session-0002")
        assert len(listed.list_sessions()) == 5

    index = root / ".statestore" / "index.db"
    before = index.stat().st_ino
    with StateStore.open(root) as store:
        _before_the_second_connection(monkeypatch, delete_and_list)
        assert [summary.id for summary in store.list_sessions(order="id")] == [
            f"session-{number:04}" for number in (0, 1, 3, 4, 5)
        ]
    assert index.stat().st_ino == before
    assert not caplog.records
