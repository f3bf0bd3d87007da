"""Indexing words in steps: however long the records are, a step keeps others waiting for a few of them only."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlite_hooks import raw

from statestore import StateStore, UserMessage
from statestore.engines import stepping
from statestore.engines.fulltext import add_words
from statestore.engines.sqlite import indexing

LENGTH = 1000
MOST = 4000
"""How many bytes a step takes here, give or take one record."""


@pytest.fixture(autouse=True)
def few_bytes_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "BYTES_A_STEP", MOST)


@pytest.fixture
def long_session(opened: Callable[..., StateStore]) -> StateStore:
    store = opened()
    store.get_or_create_session("alice", "long")
    store.append("long", *(UserMessage(f"horse {number} " + "word " * (LENGTH // 5)) for number in range(40)))
    return store


def one_step(database: Path) -> int:
    """Index a step further, and count how many records have words now."""
    with raw(database) as connection:
        connection.execute("BEGIN IMMEDIATE")
        indexing.index_some(connection)
        connection.execute("COMMIT")
        return connection.execute("SELECT count(*) FROM words").fetchone()[0]


def test_a_step_takes_records_up_to_a_number_of_bytes(
    long_session: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []

    def noted(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
        texts = list(texts)
        steps.append(sum(len(text) for _, text in texts))
        add_words(connection, texts)

    monkeypatch.setattr(indexing, "add_words", noted)
    assert len(long_session.search_sessions("horse", limit=100)) == 40
    assert max(steps) < MOST + 2 * LENGTH
    assert sum(steps) > 40 * LENGTH


def test_a_step_reads_no_more_records_than_it_takes(long_session: StateStore, database: Path) -> None:
    read: list[int] = []

    def counted(*_: Any) -> int:
        read.append(1)
        return 0

    with raw(database) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.create_function("horses", 1, counted)
        connection.execute("ALTER TABLE records RENAME TO kept")
        connection.execute("CREATE VIEW records AS SELECT place, kind + horses(place) AS kind, body FROM kept")
        indexing.index_some(connection)
        connection.execute("ROLLBACK")
    assert 0 < len(read) <= MOST // LENGTH + 1
    assert long_session.session_exists("long")


def test_a_record_that_is_longer_than_a_step_is_indexed(opened: Callable[..., StateStore]) -> None:
    store = opened()
    store.get_or_create_session("alice", "long")
    store.append("long", UserMessage("before"), UserMessage("horse " + "y" * 3 * MOST), UserMessage("after"))
    assert [hit.seq for hit in store.search_sessions("horse")] == [2]
    assert [hit.seq for hit in store.search_sessions("after")] == [3]


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_step_removes_words_up_to_a_number_of_bytes(
    is_deleted: bool, long_session: StateStore, database: Path
) -> None:
    long_session.search_sessions("horse")
    if is_deleted:
        long_session.delete_session("long")
    else:
        long_session.rewind_session("long", to=4)
    left = [40]
    while left[-1] > (0 if is_deleted else 4):
        left.append(one_step(database))
        assert 0 < left[-2] - left[-1] <= MOST // LENGTH + 1
    assert len(long_session.search_sessions("horse", limit=100)) == left[-1]
