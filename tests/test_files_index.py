"""The index of session files on disk is a cache: when it is thrown away, and when it is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from faces import Face
from statestore import Session, StateStore


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
