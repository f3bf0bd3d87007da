"""Reading beside others who write, and what is too much for one text of SQLite's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import files_beside, hooked, raw, said

from statestore import AgentResponse, Event, StateStore, UserMessage
from statestore.engines import stepping
from statestore.engines.sqlite import indexing, resting
from statestore.engines.sqlite.statements import SQL


@pytest.mark.parametrize("extra", [[], [Event("tool", "z")]], ids=["exchanges", "with an event"])
def test_a_session_with_more_than_fits_into_one_text_is_read_as_any_other(
    extra: list[Event], opened: Callable[..., StateStore]
) -> None:
    with hooked() as made:
        store = opened()
        store.get_or_create_session("alice", "a")
        for number in range(20):
            store.append("a", UserMessage(f"{number} " + "x" * 20_000), AgentResponse(f"{number} " + "y" * 20_000))
        if extra:
            store.append("a", *extra)
        before = said(store, "a")
        made[-1].setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
        assert said(store, "a") == before
        session = store.load_session("a")
        assert session is not None
        assert [message.content for message in session.user_messages] == before[0:40:2]


@pytest.mark.parametrize("read_only", [False, True])
def test_an_index_that_somebody_begins_anew_during_a_search_hides_nothing(
    read_only: bool, database: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = opened()
    for name in ("a", "b", "c"):
        writer.get_or_create_session("alice", name)
        writer.append(name, UserMessage("a horse"))
    assert len(writer.search_sessions("horse")) == 3
    is_done: list[bool] = []

    def begin_anew(statement: str) -> None:
        if statement == SQL["indexing_state"] and not is_done:
            is_done.append(True)
            with raw(database) as connection:
                connection.execute("UPDATE indexing SET rules = rules - 1")
                connection.execute("BEGIN IMMEDIATE")
                indexing.index_some(connection)
                connection.execute("COMMIT")

    with hooked(after=begin_anew):
        store = opened(read_only=read_only)
        monkeypatch.setattr(stepping, "RECORDS_A_STEP", 1)
        assert {hit.session_id for hit in store.search_sessions("horse")} == {"a", "b", "c"}
    assert is_done


def _at_rest(path: Path, text: str) -> bytes:
    """A store with one message that nobody has open; what is in its file."""
    with StateStore.open(path) as store:
        store.get_or_create_session("alice", "a")
        store.append("a", UserMessage(text))
    return path.read_bytes()


def test_a_reader_of_a_file_that_nobody_writes_opens_it_once(
    database: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    _at_rest(database, "hello")
    monkeypatch.setattr(resting, "SETTLED_NS", 3600 * 10**9)
    with hooked() as made:
        reader = opened(read_only=True)
        assert said(reader, "a") == ["hello"]
        count = len(made)
        assert said(reader, "a") == ["hello"]
        assert len(made) > count, "which was written a moment ago: somebody may not be done"
        monkeypatch.setattr(resting, "SETTLED_NS", 0)
        assert said(reader, "a") == ["hello"]
        count = len(made)
        assert [said(reader, "a") for _ in range(5)] == [["hello"]] * 5
        assert len(made) == count


def test_a_reader_takes_a_new_mode_for_no_write(database: Path, opened: Callable[..., StateStore]) -> None:
    _at_rest(database, "hello")
    before = files_beside(database)
    statements: list[str] = []

    def change_without_a_write(statement: str) -> None:
        statements.append(statement)
        if len(statements) in (5, 15):
            database.chmod(0o600)

    with hooked(before=change_without_a_write):
        reader = opened(read_only=True)
        for _ in range(10):
            assert said(reader, "a") == ["hello"]
    assert len(statements) > 15
    assert files_beside(database) == before


def test_a_reader_sees_what_was_written_in_place_with_the_time_set_back(
    database: Path, tmp_path: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resting, "SETTLED_NS", 0)
    before, after = _at_rest(database, "hello"), _at_rest(tmp_path / "other.db", "adieu")
    assert len(before) == len(after)
    reader = opened(read_only=True)
    assert said(reader, "a") == ["hello"]
    status = database.stat()
    with database.open("r+b") as file:
        file.write(after)
    os.utime(database, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert said(reader, "a") == ["adieu"]


def test_a_reader_whose_search_was_interrupted_searches_again(opened: Callable[..., StateStore]) -> None:
    writer = opened()
    writer.get_or_create_session("alice", "a")
    writer.append("a", UserMessage("a horse"))
    is_done: list[bool] = []

    def interrupt(statement: str) -> None:
        if statement.startswith("INSERT INTO words") and not is_done:
            is_done.append(True)
            raise KeyboardInterrupt

    with hooked(after=interrupt):
        reader = opened(read_only=True)
        with pytest.raises(KeyboardInterrupt):
            reader.search_sessions("horse")
        assert [hit.session_id for hit in reader.search_sessions("horse")] == ["a"]
