"""What reaches the disk before a write returns, and in which order: recorded call by call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deeds
import pytest
from deeds import Deed

from statestore import Session, StateStore, StoreUnavailable


def _holds_data(where: str) -> bool:
    """Whether a path is one that holds data: not a lock, nor another empty file of the store's own."""
    return ".statestore" not in where or "/tmp/" in where


class Recorder:
    """Notes the calls that matter, each with the path it is about, below the place that is watched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
        self.calls: list[tuple[str, str]] = []
        self._place = str(place)
        for name in ("open", "writev", "fsync", "rename", "unlink", "mkdir", "utime", "fchmod"):
            monkeypatch.setattr(os, name, self._recording(name, getattr(os, name)))

    def _recording(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            where = self._path(arguments, options)
            result = original(*arguments, **options)
            if name == "open":
                if arguments[1] & os.O_CREAT and _holds_data(where):
                    self.calls.append(("create", where))
            elif name == "rename":
                target = self._resolved(arguments[1], options.get("dst_dir_fd"))
                self.calls += [("rename", where), ("renamed to", target)]
            else:
                self.calls.append((name, where))
            return result

        return call

    def _path(self, arguments: tuple[Any, ...], options: dict[str, Any]) -> str:
        return self._resolved(arguments[0], options.get("dir_fd", options.get("src_dir_fd")))

    def _resolved(self, path: Any, directory: int | None) -> str:
        if isinstance(path, int):
            found = os.readlink(f"/proc/self/fd/{path}")
        elif directory is not None:
            found = f"{os.readlink(f'/proc/self/fd/{directory}')}/{path}"
        else:
            found = os.path.abspath(path)
        return os.path.relpath(found, self._place)

    def take(self) -> list[tuple[str, str]]:
        """What was noted since the last time."""
        calls, self.calls = self.calls, []
        return calls


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, root: Path) -> Iterator[Recorder]:
    yield Recorder(monkeypatch, root)
    monkeypatch.undo()


def _check_order(calls: list[tuple[str, str]]) -> None:
    """Nothing gets its name before its bytes are on the disk, and no name or removal is left unflushed."""
    unflushed_files: set[str] = set()
    unflushed_directories: set[str] = set()
    for call, path in calls:
        parent = os.path.dirname(path) or "."
        if call in ("create", "writev", "utime", "fchmod"):
            unflushed_files.add(path)
        elif call == "fsync":
            unflushed_files.discard(path)
            unflushed_directories.discard(path)
        elif call == "rename":
            assert path not in unflushed_files, f"{path} got its name before its bytes were on the disk"
            if "/tmp/" not in path:
                unflushed_directories.add(parent)
        elif call == "renamed to":
            if path.endswith("/journal"):
                assert not unflushed_files, "the journal was put in place before what it speaks of"
            if "/tmp/" not in path:
                unflushed_directories.add(parent)
        elif call == "unlink":
            if path.endswith("/journal"):
                assert not unflushed_directories, "the journal went before what it speaks of was on the disk"
            if "/tmp/" not in path:
                unflushed_directories.add(parent)
        elif call == "mkdir":
            unflushed_directories.add(parent)
    assert not unflushed_files
    assert not unflushed_directories, "the call returned before the directory was on the disk"


@pytest.mark.parametrize("deed", deeds.ALL, ids=[deed.name for deed in deeds.ALL])
def test_bytes_are_on_the_disk_before_their_name_and_the_name_before_the_call_returns(
    deed: Deed, store: StateStore, recorder: Recorder
) -> None:
    deeds.furnish(store)
    do = deed.prepared(store)
    recorder.take()
    do()
    calls = recorder.take()
    assert "fsync" in {call for call, _ in calls}
    _check_order(calls)


def test_a_save_is_written_flushed_renamed_and_its_directory_flushed(store: StateStore, recorder: Recorder) -> None:
    session = store.get_or_create_session("alice", "one")
    session.add_user_message("hello")
    recorder.take()
    store.save_session(session)
    calls = list(dict.fromkeys(call for call in recorder.take() if call[0] != "utime"))  # it may take several writes
    temporary = calls[0][1]
    assert temporary.startswith(".statestore/tmp/")
    assert calls == [
        ("create", temporary),
        ("writev", temporary),
        ("fsync", temporary),
        ("rename", temporary),
        ("renamed to", "sessions/one.json"),
        ("fsync", "sessions"),
    ]


def test_a_batch_is_on_the_disk_with_its_journal_before_any_of_its_files_gets_its_name(
    store: StateStore, recorder: Recorder
) -> None:
    store.save_markdown("notes", "old", "old")
    recorder.take()
    with store.batch() as batch:
        batch.save_session(Session("alice", "one"))
        batch.save_markdown("notes", "one", "hello")
        batch.delete_file("notes", "old", kind="md")
    calls = recorder.take()
    _check_order(calls)
    journal = calls.index(("renamed to", ".statestore/journal"))
    assert calls[journal + 1] == ("fsync", ".statestore")
    changes = [("renamed to", "sessions/one.json"), ("renamed to", "notes/one.md"), ("rename", "notes/old.md")]
    for change in changes:
        assert calls.index(change) > journal + 1
    gone = calls.index(("unlink", ".statestore/journal"))
    assert all(calls.index(change) < gone for change in changes)
    removed = calls[calls.index(("rename", "notes/old.md")) + 1][1]
    assert calls[gone + 1 :] == [("fsync", ".statestore"), ("unlink", removed)]


def test_a_save_that_changes_nothing_touches_nothing(store: StateStore, recorder: Recorder) -> None:
    session = store.get_or_create_session("alice", "one")
    recorder.take()
    store.save_session(session)
    assert recorder.take() == []


def test_the_way_to_a_new_store_is_on_the_disk_when_it_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch, tmp_path)
    StateStore.open(tmp_path / "a" / "b" / "c" / "state").close()
    calls = recorder.take()
    monkeypatch.undo()
    _check_order(calls)
    made = [path for call, path in calls if call == "mkdir"]
    assert {"a", "a/b", "a/b/c", "a/b/c/state"} <= set(made)


@pytest.mark.parametrize("deed", deeds.ALL, ids=[deed.name for deed in deeds.ALL])
def test_relaxed_durability_flushes_nothing(deed: Deed, root: Path, recorder: Recorder) -> None:
    StateStore.open(root).close()
    recorder.take()
    with StateStore.open(root, durability="relaxed") as store:
        deeds.furnish(store)
        deed.prepared(store)()
    assert [path for call, path in recorder.take() if call == "fsync"] == []


def test_relaxed_durability_flushes_nothing_when_it_creates_a_store(root: Path, recorder: Recorder) -> None:
    StateStore.open(root, durability="relaxed").close()
    assert [path for call, path in recorder.take() if call == "fsync"] == []


def test_relaxed_durability_is_as_whole_as_any(root: Path) -> None:
    with StateStore.open(root, durability="relaxed") as store:
        deeds.furnish(store)
        deeds.BATCH.prepared(store)()
        state = deeds.seen(store)
    with StateStore.open(root) as store:
        assert deeds.seen(store) == state
        assert store.check() == []


def test_what_a_failed_save_left_behind_is_flushed_before_it_is_taken_for_stored(
    store: StateStore, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session("alice", "unsure")
    store.save_session(session)
    session.add_user_message("did this happen?")
    flush = os.fsync
    failing = ["sessions"]

    def fail_once(fd: int) -> None:
        if failing and os.path.basename(os.readlink(f"/proc/self/fd/{fd}")) == failing[0]:
            failing.clear()
            raise OSError(5, "Input/output error")
        flush(fd)

    monkeypatch.setattr(os, "fsync", fail_once)
    with pytest.raises(StoreUnavailable):
        store.save_session(session)
    recorder.take()
    store.save_session(session)
    assert ("fsync", "sessions") in recorder.take()
    loaded = store.load_session("unsure")
    assert loaded is not None
    assert [message.content for message in loaded.user_messages] == ["did this happen?"]
    assert recorder.take() == [], "what is flushed is not flushed again"
