"""The index of session files on disk is a cache: when it is thrown away, and when it is not."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from faces import Face
from statestore import Session, SessionSummary, StateStore, StoreUnavailable
from statestore.engines import selecting
from statestore.engines.files import index
from statestore.engines.files.index_file import IndexFile


def test_an_index_that_somebody_has_locked_is_done_without_and_kept(
    files_store: StateStore, face: Face, directory: Path
) -> None:
    files_store.save_session(Session("alice", "s"))
    assert [summary.id for summary in files_store.list_sessions()] == ["s"]
    index = directory / ".statestore" / "index.db"
    before = index.stat().st_ino
    with closing(sqlite3.connect(index, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("PRAGMA user_version=1")
        assert [summary.id for summary in face.open(directory).list_sessions()] == ["s"]
        assert index.stat().st_ino == before
        other.execute("ROLLBACK")
    assert [summary.id for summary in face.open(directory).list_sessions()] == ["s"]


@pytest.mark.parametrize("order", ["updated", "id"])
def test_a_page_is_found_without_a_look_at_the_summaries_before_it(
    order: Literal["updated", "id"], files_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        files_store.save_session(Session("alice", f"s{number:03}"))
    looks: list[str] = []
    newest_first_key = selecting.newest_first_key

    def noted(summary: SessionSummary) -> int:
        looks.append(summary.id)
        return newest_first_key(summary)

    for module in (index, selecting):
        monkeypatch.setattr(module, "newest_first_key", noted)
    last, found = None, list[str]()
    while page := files_store.list_sessions(order=order, limit=20, after=last):
        found += [summary.id for summary in page]
        last = page[-1].cursor
    assert found == sorted(found, reverse=order == "updated")
    assert len(found) == 200
    assert len(looks) <= 10 * 8
    assert [summary.id for summary in files_store.list_sessions(order=order, user_id="alice", after=last)] == []


@pytest.fixture
def indexed(tmp_path: Path) -> Iterator[StateStore]:
    """A store with 12 sessions, each of which the index on disk tells of."""
    with StateStore.open(f"file:{tmp_path / 'store'}", durability="relaxed") as store:
        for number in range(12):
            store.save_session(Session("alice", f"s{number:02}"))
        for path in (tmp_path / "store" / "sessions").iterdir():
            os.utime(path, (1_700_000_000, 1_700_000_000))  # old enough to be believed
        store.list_sessions()
        yield store


def _delete_the_newest_before_each_look(store: StateStore, times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have another store delete what is about to be read from the index on disk; the sessions that are left."""
    left = [summary.id for summary in store.list_sessions()]
    summaries = IndexFile.summaries

    def delete_first(file: IndexFile, session_ids: Sequence[str]) -> list[SessionSummary]:
        nonlocal times
        if times:
            times -= 1
            store.delete_session(left.pop(0))
            store.list_sessions()  # which notes on disk that it is gone
        return summaries(file, session_ids)

    monkeypatch.setattr(IndexFile, "summaries", delete_first)
    return left


def test_a_listing_is_made_though_others_delete_what_it_is_about_to_read(
    indexed: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateStore.open(indexed.url) as other:
        left = _delete_the_newest_before_each_look(indexed, 5, monkeypatch)
        assert [summary.id for summary in other.list_sessions(limit=1)] == left[:1]
        assert len(left) == 7


def test_a_listing_that_others_make_useless_again_and_again_is_given_up(
    indexed: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateStore.open(indexed.url) as other:
        left = _delete_the_newest_before_each_look(indexed, 10, monkeypatch)
        with pytest.raises(StoreUnavailable, match=r"cannot be listed.*try again"):
            other.list_sessions(limit=1)
        assert [summary.id for summary in other.list_sessions()] == left
