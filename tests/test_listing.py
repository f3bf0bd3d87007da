"""Listing and counting sessions: order, filters, pages that hold while others write."""

from __future__ import annotations

import itertools
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore import Session, StateStore, UserMessage
from statestore.engines.files import seen
from statestore.labels import opening_of

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def filled(store: StateStore) -> StateStore:
    """Ten sessions s0 (oldest) to s9 (newest), in pairs of one moment."""
    for number in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7):
        session = Session("alice" if number % 3 else "bob", f"s{number}")
        session.updated_at = START + timedelta(hours=number // 2)
        session.project_id = "p" if number % 2 else None
        session.parent_session_id = "s0" if number in (5, 6) else None
        store.save_session(session)
    return store


def ids(summaries: list[Any]) -> list[str]:
    return [summary.id for summary in summaries]


NEWEST_FIRST = ["s8", "s9", "s6", "s7", "s4", "s5", "s2", "s3", "s0", "s1"]


def test_newest_first_and_ties_by_id(filled: StateStore, other: StateStore) -> None:
    assert ids(filled.list_sessions()) == ids(other.list_sessions()) == NEWEST_FIRST
    assert ids(filled.list_sessions(order="id")) == sorted(NEWEST_FIRST)


def test_order_is_by_nanoseconds_though_datetimes_have_six_digits(files_store: StateStore, directory: Any) -> None:
    (directory / "sessions").mkdir()
    for name, digits in (("a", "000000001"), ("b", "000000003"), ("c", "000000002"), ("d", "0000000025")):
        (directory / "sessions" / f"{name}.json").write_text(
            f'{{"id": "{name}", "user_id": "u", "created_at": "2026-01-01T00:00:00Z", '
            f'"updated_at": "2026-01-01T00:00:00.{digits}Z"}}',
            encoding="utf-8",
        )
    assert ids(files_store.list_sessions()) == ["b", "c", "d", "a"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"user_id": "bob"}, {0, 3, 6, 9}),
        ({"user_id": "nobody"}, set()),
        ({"project_id": "p"}, {1, 3, 5, 7, 9}),
        ({"parent_session_id": "s0"}, {5, 6}),
        ({"top_level": True}, {0, 1, 2, 3, 4, 7, 8, 9}),
        ({"updated_since": START + timedelta(hours=3)}, {6, 7, 8, 9}),
        ({"updated_since": START + timedelta(hours=3, microseconds=1)}, {8, 9}),
        ({"user_id": "bob", "project_id": "p"}, {3, 9}),
        ({"user_id": "bob", "project_id": "p", "updated_since": START + timedelta(hours=2), "top_level": True}, {9}),
        ({"parent_session_id": "s0", "top_level": True}, set()),
    ],
)
def test_filters(filled: StateStore, filters: dict[str, Any], expected: set[int]) -> None:
    names = {f"s{number}" for number in expected}
    assert ids(filled.list_sessions(**filters)) == [name for name in NEWEST_FIRST if name in names]
    assert ids(filled.list_sessions(order="id", **filters)) == sorted(names)
    assert filled.count_sessions(**filters) == len(names)
    assert ids(filled.list_sessions(limit=1, **filters)) == [name for name in NEWEST_FIRST if name in names][:1]


@pytest.mark.parametrize("order", ["updated", "id"])
@pytest.mark.parametrize("size", [1, 2, 3, 10, 11])
def test_pages_hold_everything_once(filled: StateStore, order: Any, size: int) -> None:
    found: list[str] = []
    after = None
    while page := filled.list_sessions(order=order, limit=size, after=after):
        assert len(page) <= size
        found += ids(page)
        after = page[-1].cursor
    assert found == (NEWEST_FIRST if order == "updated" else sorted(NEWEST_FIRST))


def test_no_limit_is_all_and_zero_is_none(filled: StateStore) -> None:
    assert len(filled.list_sessions()) == 10
    assert filled.list_sessions(limit=0) == []
    assert filled.count_sessions() == 10


def test_while_others_write_what_nobody_touched_appears_once(filled: StateStore, other: StateStore) -> None:
    first = filled.list_sessions(limit=4)
    other.append("s0", UserMessage("now the newest"))
    other.append("s8", UserMessage("listed already"))
    other.delete_session("s2")
    new = Session("alice", "new")
    other.save_session(new)
    rest = filled.list_sessions(after=first[-1].cursor)
    found = ids(first) + ids(rest)
    assert found == ["s8", "s9", "s6", "s7", "s4", "s5", "s3", "s1"]


def test_by_id_misses_nothing_while_others_write(filled: StateStore, other: StateStore) -> None:
    first = filled.list_sessions(order="id", limit=5)
    other.append("s7", UserMessage("touched"))
    other.append("s1", UserMessage("touched"))
    rest = filled.list_sessions(order="id", after=first[-1].cursor)
    assert ids(first) + ids(rest) == sorted(NEWEST_FIRST)


def test_a_cursor_holds_when_its_session_is_gone_and_in_another_store(filled: StateStore, other: StateStore) -> None:
    page = filled.list_sessions(limit=3)
    filled.delete_session(page[-1].id)
    assert ids(other.list_sessions(after=page[-1].cursor)) == NEWEST_FIRST[3:]


def test_a_summary_tells_what_a_listing_needs(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("Hello\nthere")
    session.add_agent_response("A")
    session.add_event("e")
    session.add_event("e")
    session.set_active_seed("seed")
    session.set_active_persona("persona")
    session.project_id = "p"
    session.parent_session_id = "parent"
    store.save_session(session)
    (summary,) = store.list_sessions()
    assert (summary.id, summary.user_id, summary.title) == ("s", "alice", "Hello")
    assert (summary.message_count, summary.response_count, summary.event_count) == (1, 1, 2)
    assert (summary.active_seed_id, summary.active_persona_id) == ("seed", "persona")
    assert (summary.project_id, summary.parent_session_id) == ("p", "parent")
    assert (summary.created_at, summary.updated_at) == (session.created_at, session.updated_at)
    assert summary.version == session.version
    assert summary.size > 0
    with pytest.raises(AttributeError):
        summary.title = "other"  # type: ignore[misc]


def test_a_listing_shows_every_change_at_once(store: StateStore, other: StateStore) -> None:
    session = Session("alice", "s")
    store.save_session(session)
    for number in range(1, 6):
        session.add_user_message(str(number))
        store.save_session(session)
        assert [s.message_count for s in other.list_sessions()] == [number]
        assert [s.message_count for s in store.list_sessions()] == [number]
    store.delete_session("s")
    assert other.list_sessions() == store.list_sessions() == []
    assert other.count_sessions() == 0


def test_a_session_exists_or_not(store: StateStore) -> None:
    assert store.session_exists("s") is False
    store.save_session(Session("alice", "s"))
    assert store.session_exists("s") is True


def test_a_session_that_is_deleted_and_made_anew_while_the_files_are_scanned_is_listed_as_it_is(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_store.save_session(Session("alice", "s"))
    assert [summary.user_id for summary in files_store.list_sessions()] == ["alice"]
    with StateStore.open(directory) as other:
        scan, scans = os.scandir, itertools.count()

        def scan_beside_another(place: Any) -> Any:
            number = next(scans)
            if number == 1:
                other.save_session(Session("bob", "s"))
            found = scan(place)
            if number == 0:
                other.delete_session("s")  # whether its name was seen or not, it is not there when it is looked at
            return found

        monkeypatch.setattr(seen, "os", SimpleNamespace(scandir=scan_beside_another))
        assert [summary.user_id for summary in files_store.list_sessions()] == ["bob"]


@given(st.text(alphabet="ab \t\n\r\x1c\x85\xa0\u2028\u3000é東", max_size=70) | st.text(max_size=300))
def test_a_title_is_the_first_line_that_says_something(message: str) -> None:
    lines = message.lstrip()[:240].splitlines()
    assert opening_of(message) == (lines[0][:60].rstrip() if lines else "")
