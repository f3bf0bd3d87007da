"""Sessions that are written again and again: they move in no index, and are listed in their places all the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from sqlite_hooks import raw

from statestore import Session, StateStore, UserMessage
from statestore.conformance.listing import ListingCases
from statestore.conformance.paging import PagingCases
from statestore.engine import SessionQuery
from statestore.engines.sqlite import upkeep, writing
from statestore.engines.sqlite.listing import count_sessions, list_sessions
from statestore.stored import Cursor
from statestore.timestamps import nanoseconds

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


SHAPES = {
    "newest": SessionQuery(limit=10),
    "by id": SessionQuery(order="id", limit=10),
    "newest of a user": SessionQuery(user_id="alice", limit=10),
    "by id, of a user": SessionQuery(user_id="alice", order="id", limit=10),
    "by id, of a user, the next page": SessionQuery(user_id="alice", order="id", limit=10, after=Cursor(0, "hers-5")),
    "lately": SessionQuery(updated_since_ns=nanoseconds("2999-01-01T00:00:00Z"), limit=10),
    "children": SessionQuery(parent_session_id="hers-1", limit=10),
}


COUNTED = set(SHAPES) - {"newest", "by id"}  # whoever counts all looks at all


@pytest.mark.parametrize(
    ("what", "shape"), [*product([list_sessions], SHAPES), *product([count_sessions], sorted(COUNTED))]
)
def test_a_listing_costs_the_same_in_a_store_of_any_size(
    what: Callable[[sqlite3.Connection, SessionQuery], object], shape: str, stores_of_two_sizes: tuple[Path, Path]
) -> None:
    def steps(database: Path) -> int:
        taken: list[None] = []
        with raw(database) as connection:
            connection.set_progress_handler(lambda: taken.append(None), 1)
            what(connection, SHAPES[shape])
        return len(taken)

    small, large = stores_of_two_sizes
    assert steps(large) < 1.5 * steps(small)


@pytest.fixture(scope="module")
def stores_of_two_sizes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two stores, one twenty times as large as the other. In each, 20 sessions are Alice's, and two of them busy."""
    place = tmp_path_factory.mktemp("sizes")
    for size in (100, 2000):
        with StateStore.open(place / f"{size}.db") as store:
            with store.batch() as batch:
                for number in range(size):
                    batch.save_session(Session.with_id(f"user-{number % 50}", f"earlier-{number}"))
                for number in range(20):
                    batch.save_session(Session.with_id("alice", f"hers-{number}"))
            _make_busy(store, "hers-2", "hers-7")
    return place / "100.db", place / "2000.db"


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
