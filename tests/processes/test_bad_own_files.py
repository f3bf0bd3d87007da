"""The store's own corner, damaged: the index is only a cache, and a journal that makes no sense is a clear error."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from contents import snapshot

from statestore import CorruptData, Session, StateStore, StateStoreError, StoreUnavailable


@pytest.fixture
def own(root: Path) -> Path:
    """The store's own corner, of a store with three sessions and an index."""
    with StateStore.open(root) as store:
        for name in "abc":
            store.save_session(Session("alice", name))
        store.save_markdown("notes", "today", "hello")
        store.list_sessions()
    return root / ".statestore"


def _remove_index(own: Path) -> Path:
    for path in own.glob("index.db*"):
        path.unlink()
    return own / "index.db"


def _ids(root: Path) -> list[str]:
    with StateStore.open(root) as store:
        return [summary.id for summary in store.list_sessions(order="id")]


def test_an_index_cut_anywhere_is_rebuilt(own: Path, root: Path) -> None:
    whole = (own / "index.db").read_bytes()
    for size in (0, 1, 15, 16, 50, 99, 100, 1000, len(whole) // 2, len(whole) - 1):
        _remove_index(own).write_bytes(whole[:size])
        assert _ids(root) == list("abc")
        assert _ids(root) == list("abc")


def test_an_index_of_garbage_is_rebuilt(own: Path, root: Path) -> None:
    whole = (own / "index.db").read_bytes()
    for garbage in (b"garbage" * 1000, b"\0" * 8192, whole[:100] + b"\xff" * (len(whole) - 100)):
        _remove_index(own).write_bytes(garbage)
        assert _ids(root) == list("abc")
        assert _ids(root) == list("abc")


def test_an_index_with_other_tables_or_rows_is_rebuilt(own: Path, root: Path) -> None:
    whole = (own / "index.db").read_bytes()
    changes = [
        "DROP TABLE files",
        "DROP TABLE files; CREATE TABLE files (a, b, c)",
        "UPDATE files SET {0} = 'nonsense'",
        "UPDATE files SET {0} = NULL",
        "UPDATE files SET {0} = x'ff00'",
        "PRAGMA user_version = 99",
    ]
    for change in changes:
        with closing(sqlite3.connect(own / "index.db")) as connection:
            columns = [row[1] for row in connection.execute("PRAGMA table_info(files)")]
        for column in columns[1:] if "{0}" in change else columns[:1]:
            _remove_index(own).write_bytes(whole)
            connection = sqlite3.connect(own / "index.db")
            try:
                connection.executescript(change.format(column))
            except sqlite3.IntegrityError:
                continue  # the index itself refuses it
            finally:
                connection.close()
            assert _ids(root) == list("abc")
            with StateStore.open(root) as store:
                assert store.count_sessions(user_id="alice") == 3
        _remove_index(own).write_bytes(whole)


def test_a_directory_in_the_place_of_the_index_does_not_stop_a_listing(own: Path, root: Path) -> None:
    _remove_index(own).mkdir()
    (own / "index.db" / "kept").write_text("by whom?")
    assert _ids(root) == list("abc")
    assert (own / "index.db" / "kept").exists()


def test_a_link_in_the_place_of_the_index_is_not_followed(own: Path, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "other.db"
    connection = sqlite3.connect(outside)
    connection.executescript("CREATE TABLE files (x); INSERT INTO files VALUES (1)")
    connection.close()
    before = outside.read_bytes()
    _remove_index(own).symlink_to(outside)
    assert _ids(root) == list("abc")
    assert outside.read_bytes() == before


JOURNALS: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(b"garbage"),
    "no bytes": lambda path: path.write_bytes(b""),
    "other JSON": lambda path: path.write_bytes(b'{"a": 1}'),
    "not UTF-8": lambda path: path.write_bytes(b'{"steps":[{"category":"\xff","name":"x"}]}'),
    "nested 100,000 deep": lambda path: path.write_bytes(b'{"steps":' + b"[" * 100_000),
    "a directory": lambda path: path.mkdir(),
    "a link": lambda path: path.symlink_to("/nowhere"),
}


@pytest.mark.parametrize("journal", JOURNALS)
def test_a_journal_that_makes_no_sense_is_a_clear_error_and_costs_nothing(journal: str, own: Path, root: Path) -> None:
    path = own / "journal"
    with StateStore.open(root) as store:
        JOURNALS[journal](path)
        before = snapshot(root)
        acts: list[Callable[[], object]] = [
            lambda: StateStore.open(root),
            lambda: store.load_session("a"),
            lambda: store.list_sessions(),
            lambda: store.save_session(Session("alice", "new")),
        ]
        for act in acts:
            with pytest.raises(CorruptData, match=r"\.statestore/journal"):
                act()
        assert os.path.lexists(path)
        assert snapshot(root) == before
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        assert len(store.list_sessions()) == 3
    assert _ids(root) == list("abc")


def test_a_journal_cannot_reach_out_of_the_store(own: Path, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("kept")
    was = f"4-{zlib.crc32(b'kept'):08x}"
    (own / "tmp" / "00.planted").write_text("planted")
    steps = [
        f'{{"category":"notes","name":"../../outside.md","before":"{was}"}}',
        f'{{"category":"..","name":"outside.md","before":"{was}"}}',
        f'{{"category":"notes/../..","name":"outside.md","before":"{was}"}}',
        f'{{"category":"notes","name":"../../outside.md","before":"{was}","after":"7-0","temporary":"00.planted"}}',
        f'{{"category":"notes","name":"{outside}","before":"{was}"}}',
        f'{{"category":"{tmp_path}","name":"outside.md","before":"{was}"}}',
        '{"category":"notes","name":"stolen.md","after":"4-0","temporary":"../../../outside.md"}',
        '{"category":"notes","name":"x.md","before":"9-9","after":"9-8","temporary":"../../../outside.md"}',
    ]
    for step in steps:
        (own / "journal").write_text(f'{{"steps":[{step}]}}')
        with pytest.raises(StateStoreError):
            StateStore.open(root)
        assert outside.read_text() == "kept", step
        (own / "journal").unlink(missing_ok=True)


@pytest.mark.parametrize("name", [".statestore", ".statestore/tmp"])
@pytest.mark.parametrize("kind", ["file", "link"])
def test_who_cannot_even_read_a_store_is_not_told_to(
    kind: str, name: str, own: Path, root: Path, tmp_path: Path
) -> None:
    (root / name).rename(tmp_path / "moved")
    (root / name).touch() if kind == "file" else (root / name).symlink_to(tmp_path / "moved")
    for read_only in (False, True):
        with pytest.raises(StoreUnavailable, match=rf"{root}/{re.escape(name)} is a link or a file") as refusal:
            StateStore.open(root, read_only=read_only)
        assert "read_only" not in str(refusal.value)


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.EIO], ids=os.strerror)
def test_who_may_be_refused_when_reading_too_is_not_told_to_read(
    reason: int, own: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = os.open

    def refusing(path: Any, *arguments: Any, **options: Any) -> int:
        if path == own.name:
            raise OSError(reason, os.strerror(reason))
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing)
    for read_only in (False, True):
        with pytest.raises(StoreUnavailable) as refusal:
            StateStore.open(root, read_only=read_only)
        assert str(refusal.value) == f"{own} cannot be opened: {os.strerror(reason)}"


def test_who_may_not_write_is_told_how_to_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "notes").mkdir(parents=True)
    (root / "notes" / "today.md").write_text("hello")

    def refusing(*_arguments: Any, **_options: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "mkdir", refusing)
    with pytest.raises(StoreUnavailable, match="Read-only file system; open it with read_only=True to read it"):
        StateStore.open(root)
    with StateStore.open(root, read_only=True) as store:
        assert store.load_markdown("notes", "today") == "hello"


def test_openings_that_fail_leave_nothing_open(own: Path, root: Path) -> None:
    (own / "journal").write_text("garbage")
    count = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(CorruptData):
            StateStore.open(root)
    assert len(os.listdir("/proc/self/fd")) == count


def test_lock_files_that_were_removed_are_made_again(own: Path, root: Path) -> None:
    with StateStore.open(root) as store:
        store.append("a", *[])
        for path in (own / "locks").iterdir():
            path.unlink()
        store.save_markdown("notes", "today", "again")
        with store.batch() as batch:
            batch.save_markdown("notes", "one", "1")
            batch.save_markdown("notes", "two", "2")
        assert store.list_category("notes") == ["one", "today", "two"]


@pytest.mark.parametrize("name", [".DS_Store", ".00.1a2b3c.Xk4vT9", "00 copy", "\udcff"])
def test_what_others_put_among_the_temporary_files_does_not_stop_the_store_and_is_told(
    name: str, own: Path, root: Path
) -> None:
    (own / "tmp" / name).write_text("by whom?")
    (own / "tmp" / "notes").mkdir()
    (own / "tmp" / "00.0123456789abcdef").write_text("left over")
    assert _ids(root) == list("abc")
    assert sorted(os.listdir(own / "tmp")) == sorted([name, "notes"])
    with StateStore.open(root) as store:
        assert len(store.check()) == 2
        assert len(store.check(repair=True)) == 2
