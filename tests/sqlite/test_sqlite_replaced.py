"""A database that is taken away, or replaced, under an open store: told as such, and nothing is made in its place."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlite_hooks import files_beside, said, verdict

from children import in_child
from statestore import Session, StateStore, StoreUnavailable, UserMessage

CALLS: dict[str, Callable[[StateStore], object]] = {
    "load": lambda store: store.load_session("one"),
    "timeline": lambda store: store.timeline("one"),
    "list": lambda store: store.list_sessions(),
    "count": lambda store: store.count_sessions(),
    "document": lambda store: store.load_markdown("notes", "one"),
    "categories": lambda store: store.list_categories(),
    "search": lambda store: store.search_sessions("hello"),
    "cursor": lambda store: store.change_cursor(),
    "check": lambda store: store.check(),
    "append": lambda store: store.append("one", UserMessage("lost?")),
    "save": lambda store: store.save_session(Session("alice", "two")),
    "save document": lambda store: store.save_markdown("notes", "one", "lost?"),
    "delete": lambda store: store.delete_session("one"),
}


@pytest.fixture
def used(store: StateStore) -> StateStore:
    """A store that has been read and written, and has a log."""
    store.get_or_create_session("alice", "one")
    for number in range(20):
        store.append("one", UserMessage(f"hello {number}"))
    store.search_sessions("hello")
    return store


def _check_each_says_so(store: StateStore, message: str) -> None:
    for name, call in CALLS.items():
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match=message):
                call(store)
                pytest.fail(f"{name} returned")


def test_a_deleted_file_is_told_and_not_made_anew(used: StateStore, database: Path) -> None:
    database.unlink()
    _check_each_says_so(used, r"state\.db is gone")
    assert not database.exists()


def test_a_deleted_directory_is_told_and_not_made_anew(tmp_path: Path, opened: Callable[..., StateStore]) -> None:
    store = opened(tmp_path / "dir" / "state.db")
    store.get_or_create_session("alice", "one")
    shutil.rmtree(tmp_path / "dir")
    _check_each_says_so(store, r"state\.db is gone")
    assert not (tmp_path / "dir").exists()


def test_a_file_that_is_put_back_has_everything_that_was_acknowledged(used: StateStore, database: Path) -> None:
    aside = database.with_name("aside.db")
    before = said(used, "one")
    os.rename(database, aside)
    _check_each_says_so(used, r"state\.db is gone")
    assert "" not in files_beside(database)
    os.rename(aside, database)
    assert said(used, "one") == before
    used.append("one", UserMessage("and on"))
    used.close()
    with StateStore.open(database) as again:
        assert said(again, "one") == [*before, "and on"]
        assert again.check() == []
    assert verdict(database) == "ok"


@pytest.mark.parametrize("by", ["a store", "a copy", "an empty file", "a directory", "noise"])
def test_a_file_in_its_place_is_told_and_left_alone(by: str, used: StateStore, database: Path, tmp_path: Path) -> None:
    aside, other = tmp_path / "aside.db", tmp_path / "other.db"
    before = said(used, "one")
    if by == "a directory":
        other.mkdir()
    elif by == "a copy":
        used.backup(other)
    elif by == "a store":
        StateStore.open(other).close()
    else:
        other.write_bytes(b"" if by == "an empty file" else b"noise" * 1000)
    content = None if other.is_dir() else other.read_bytes()
    os.rename(database, aside)
    os.rename(other, database)
    _check_each_says_so(used, r"state\.db was replaced")
    if content is not None:
        assert database.read_bytes() == content, "it was written to"
    os.rename(database, other)
    os.rename(aside, database)
    assert said(used, "one") == before
    used.append("one", UserMessage("and on"))
    assert said(used, "one") == [*before, "and on"]


def test_a_file_that_was_replaced_before_any_connection_was_open_is_told(database: Path, tmp_path: Path) -> None:
    """After a fork there is none, so the first thing to be opened is the new file."""
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        in_child(lambda _: None)
        with StateStore.open(tmp_path / "other.db") as other:
            other.get_or_create_session("mallory", "one")
        os.rename(database, tmp_path / "aside.db")
        os.rename(tmp_path / "other.db", database)
        _check_each_says_so(store, r"state\.db was replaced")


def test_a_file_that_is_replaced_at_the_very_moment_of_opening_is_told_and_left_alone(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would apply our log to it, if it were to read it."""
    other, aside = tmp_path / "other.db", tmp_path / "aside.db"
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        with StateStore.open(database) as second:  # so that the log stays when the first one has no connection
            in_child(lambda _: None)
            second.append("one", UserMessage("hello"))
            other.write_bytes(b"noise" * 1000)
            connect = sqlite3.connect

            def swap_and_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
                if other.exists():
                    os.rename(database, aside)
                    os.rename(other, database)
                return connect(*arguments, **options)

            monkeypatch.setattr(sqlite3, "connect", swap_and_connect)
            with pytest.raises(StoreUnavailable, match=r"state\.db was replaced"):
                store.load_session("one")
            assert database.read_bytes() == b"noise" * 1000
            os.unlink(database)
            os.rename(aside, database)
            assert said(store, "one") == said(second, "one") == ["hello"]


def test_a_file_that_was_deleted_before_any_connection_was_open_is_told(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        in_child(lambda _: None)
        database.unlink()
        _check_each_says_so(store, r"state\.db is gone")
        assert not database.exists()
