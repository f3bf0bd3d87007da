"""Repairs of a directory: what cannot be read is moved aside, what can be is not touched, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from contents import leftovers

from statestore import ReadOnlyStore, Session, StateStore

DAMAGED = {
    "sessions/cut.json": b'{"id": "cut", "user_id"',
    "sessions/empty.json": b"",
    "sessions/other.json": b'{"id":"another","user_id":"a","created_at":"2026-01-01T00:00:00Z"}',
    "notes/bad.json": b"{",
    "notes/latin.md": b"caf\xe9",
}


@pytest.fixture
def damaged(root: Path, store: StateStore) -> StateStore:
    session = Session("alice", "good")
    session.add_user_message("hello")
    store.save_session(session)
    store.save_markdown("notes", "fine", "text")
    store.save_bytes("notes", "bytes", b"\xff")
    for place, content in DAMAGED.items():
        (root / place).write_bytes(content)
    return store


def test_what_cannot_be_read_is_moved_aside_and_said(root: Path, damaged: StateStore) -> None:
    found = damaged.check()
    assert {problem.where for problem in found} == set(DAMAGED)
    assert all("check(repair=True) moves it aside" in problem.advice for problem in found)
    mended = damaged.check(repair=True)
    assert {problem.where for problem in mended} == set(DAMAGED)
    assert all(problem.is_repaired for problem in mended)
    for place, content in DAMAGED.items():
        assert not (root / place).exists()
        (told,) = [problem.advice for problem in mended if problem.where == place]
        assert f".statestore/aside/{place}" in told
        assert (root / ".statestore" / "aside" / place).read_bytes() == content
    assert damaged.check() == []
    assert damaged.check(repair=True) == []


def test_what_can_be_read_is_not_touched(root: Path, damaged: StateStore) -> None:
    kept = {
        path: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in (root / "sessions/good.json", root / "notes/fine.md", root / "notes/bytes.bin")
    }
    damaged.check(repair=True)
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept} == kept
    assert [summary.id for summary in damaged.list_sessions()] == ["good"]
    assert damaged.list_categories() == ["notes"]
    assert leftovers(root) == []


def test_an_id_that_was_blocked_by_damage_can_be_used_again_and_damaged_again(root: Path, damaged: StateStore) -> None:
    for number in range(3):
        damaged.check(repair=True)
        assert damaged.get_or_create_session("alice", "cut").id == "cut"
        (root / "sessions/cut.json").write_bytes(b"%d" % number)
    damaged.check(repair=True)
    aside = root / ".statestore" / "aside" / "sessions"
    contents = {path.read_bytes() for path in aside.glob("cut.json*")}
    assert contents == {DAMAGED["sessions/cut.json"], b"0", b"1", b"2"}


def test_a_store_that_is_only_read_is_not_repaired(root: Path, damaged: StateStore) -> None:
    with StateStore.open(root, read_only=True) as reader, pytest.raises(ReadOnlyStore):
        reader.check(repair=True)
    assert all((root / place).exists() for place in DAMAGED)
