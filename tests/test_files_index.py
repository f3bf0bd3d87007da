"""The index of session files on disk is a cache: when it is thrown away, and when it is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from faces import Face
from statestore import Session, SessionSummary, StateStore
from statestore.engines import selecting
from statestore.engines.files import index


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
    place_of = selecting.place_of

    def noted(summary: SessionSummary) -> int:
        looks.append(summary.id)
        return place_of(summary)

    for module in (index, selecting):
        monkeypatch.setattr(module, "place_of", noted)
    last, found = None, list[str]()
    while page := files_store.list_sessions(order=order, limit=20, after=last):
        found += [summary.id for summary in page]
        last = page[-1].cursor
    assert found == sorted(found, reverse=order == "updated")
    assert len(found) == 200
    assert len(looks) <= 10 * 8
    assert [summary.id for summary in files_store.list_sessions(order=order, user_id="alice", after=last)] == []
