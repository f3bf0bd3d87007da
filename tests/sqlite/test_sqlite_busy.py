"""Sessions that are written again and again: they move in no index, and are listed in their places all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_hooks import raw

from statestore import Session, StateStore, UserMessage
from statestore.conformance.listing import ListingCases
from statestore.conformance.paging import PagingCases
from statestore.engines.sqlite import upkeep, writing

FRAME = 24 + 4096
"""Bytes that a page takes in the log."""


def _busy(database: Path) -> list[str]:
    with raw(database) as connection:
        return [name for (name,) in connection.execute("SELECT id FROM sessions WHERE is_busy ORDER BY id")]


def _make_busy(store: StateStore, *ids: str) -> None:
    for session_id in ids:
        store.get_or_create_session("alice", session_id)
        for _ in range(writing.BUSY):
            store.append(session_id, UserMessage("again"))


class TestListingsOfBusySessions(ListingCases, PagingCases):
    """Every promise about listings, where whatever is written is busy at once."""

    url = "sqlite:{place}.db"

    @pytest.fixture(autouse=True)
    def _all_are_busy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(writing, "BUSY", 1)


def test_a_session_is_busy_from_its_third_write_in_a_row_on(store: StateStore, database: Path) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("second write"))
    assert _busy(database) == []
    store.append("one", UserMessage("third write"))
    assert _busy(database) == ["one"]


def test_an_append_to_a_busy_session_writes_fewer_pages(store: StateStore, database: Path) -> None:
    log = database.with_name("state.db-wal")

    def pages_of_an_append(session_id: str) -> int:
        before = log.stat().st_size
        store.append(session_id, UserMessage("x"))
        return (log.stat().st_size - before) // FRAME

    for number in range(20):
        store.get_or_create_session("alice", f"other-{number}")
    _make_busy(store, "busy")
    assert pages_of_an_append("busy") == pages_of_an_append("other-5") - 2


def test_busy_and_idle_sessions_are_listed_and_counted_together(store: StateStore, database: Path) -> None:
    expected: list[str] = []
    for number in range(10):
        session_id = f"s{number}"
        store.get_or_create_session("bob" if number % 5 == 0 else "alice", session_id)
        if number in (1, 3, 7, 9):
            _make_busy(store, session_id)
        expected.insert(0, session_id)
    assert _busy(database) == ["s1", "s3", "s7", "s9"]
    assert [summary.id for summary in store.list_sessions()] == expected
    for limit in (1, 3, 10):
        paged: list[str] = []
        cursor = None
        while page := store.list_sessions(limit=limit, after=cursor):
            paged += [summary.id for summary in page]
            cursor = page[-1].cursor
        assert paged == expected
    hers = [session_id for session_id in expected if session_id not in ("s0", "s5")]
    assert [summary.id for summary in store.list_sessions(user_id="alice")] == hers
    assert [store.count_sessions(user_id=user) for user in (None, "alice", "nobody")] == [10, 8, 0]


def test_sessions_are_busy_until_somebody_tidies_up(
    store: StateStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_busy(store, "one", "two")
    monkeypatch.setattr(upkeep, "PAGES_BETWEEN_CHECKPOINTS", 0)
    monkeypatch.setattr(upkeep, "COMMITS_BETWEEN_CHECKPOINTS", 0)
    store.append("one", UserMessage("and tidy"))
    monkeypatch.undo()
    assert _busy(database) == []
    assert [summary.id for summary in store.list_sessions()] == ["one", "two"]
    _make_busy(store, "one")
    assert _busy(database) == ["one"]
    assert store.check() == []


def test_no_more_are_busy_than_a_listing_sorts_in_no_time(
    store: StateStore, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BUSY", 1)
    with store.batch() as batch:
        for number in range(300):
            batch.save_session(Session.with_id("alice", f"s{number:03}"))
    assert len(_busy(database)) == 256
    assert len(store.list_sessions()) == 300
    assert store.check() == []
