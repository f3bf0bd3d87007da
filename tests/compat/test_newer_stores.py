"""What a newer release wrote: refused where its schema is another, kept where it is merely more; never damaged."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from compat.dumps import client_of, dumped, load, prefix_of, run_in
from compat.make_golden import STORES
from snapshots import snapshot
from soak.grounds import Ground, fresh
from statestore import CorruptData, CorruptSession, StateStore, StoreUnavailable, UserMessage, __version__

NEWER = 99


@pytest.fixture
def files() -> Iterator[Path]:
    """A directory with the golden store."""
    with fresh("files") as ground:
        load(ground, STORES / __version__)
        yield Path(ground.target.removeprefix("file:"))


def _make_newer(ground: Ground) -> None:
    """Let the store say that its schema is one of a release to come."""
    match ground.engine:
        case "sqlite":
            with closing(sqlite3.connect(ground.target.removeprefix("sqlite:"))) as connection:
                connection.execute(f"PRAGMA user_version={NEWER}")
        case "postgres":
            run_in(ground, f"UPDATE store SET version = {NEWER}", "SELECT 1")
        case _:
            with client_of(ground) as client:
                client.hset(f"{prefix_of(ground)}:store", "version", NEWER)


@pytest.mark.parametrize("engine", ["sqlite", "postgres", "valkey", "valkey-cluster"])
def test_a_newer_schema_is_refused_with_its_number_and_left_alone(engine: str) -> None:
    with fresh(engine) as ground:
        load(ground, STORES / __version__)
        _make_newer(ground)
        before, files = dumped(ground), _bodies(ground.directory)
        for options in ({}, {"read_only": True}, {"create": False}):
            with pytest.raises(StoreUnavailable, match=f"version {NEWER}.*newer"):
                StateStore.open(ground.target, **options)
        assert dumped(ground) == before
        found = _bodies(ground.directory)
        assert {name: found[name] for name in files} == files


def _bodies(directory: Path) -> dict[str, bytes]:
    return {name: entry.body for name, entry in snapshot(directory).items() if entry.body is not None}


# -- files: the layout is the Rust program's, so it has no version of ours


def test_what_a_newer_release_notes_in_a_session_file_is_kept_when_we_write(files: Path) -> None:
    path = files / "sessions" / "gaps.json"
    session = json.loads(path.read_bytes())
    session["metadata"]["statestore"]["marks"] = future = {"pinned": [1, 2], "z": None}
    path.write_text(json.dumps(session, indent=2, ensure_ascii=False))
    with StateStore.open(files) as store:
        store.append("gaps", UserMessage("more"), keys=["another"])
        loaded = store.load_session("gaps")
        assert loaded is not None
        loaded.set_metadata("title", "Gaps")
        store.save_session(loaded)
        store.rewind_session("gaps", to=3)
        assert "statestore" not in loaded.metadata
        assert store.check() == []
    assert json.loads(path.read_bytes())["metadata"]["statestore"]["marks"] == future


@pytest.mark.parametrize("cache", ["index.db", "changes.db"])
def test_caches_of_a_newer_release_are_made_anew_and_cost_nothing_else(cache: str, files: Path) -> None:
    with StateStore.open(files) as store:
        expected = [summary.id for summary in store.list_sessions()]
    with closing(sqlite3.connect(files / ".statestore" / cache)) as connection:
        connection.execute(f"PRAGMA user_version={NEWER}")
    sessions = {path.name: path.read_bytes() for path in (files / "sessions").iterdir()}
    with StateStore.open(files) as store:
        assert [summary.id for summary in store.list_sessions()] == expected
        assert {hit.session_id for hit in store.search_sessions("ferry")} == {"trip", "fork"}
        assert store.check() == []
    assert {path.name: path.read_bytes() for path in (files / "sessions").iterdir()} == sessions


def test_a_journal_of_a_newer_release_is_neither_made_by_half_nor_removed(files: Path) -> None:
    journal = files / ".statestore" / "journal"
    step = {"category": "notes", "name": "today.md", "temporary": "gone", "link": "to what we do not know"}
    journal.write_text(json.dumps({"steps": [step]}))
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    with pytest.raises(CorruptData, match=r"journal cannot be understood.*`link`"), StateStore.open(files) as store:
        store.append("gaps", UserMessage("more"))
    assert {path: path.read_bytes() for path in before} == before


def test_a_session_that_a_newer_release_threw_away_with_more_is_not_restored_with_less(files: Path) -> None:
    (packed,) = (path for path in (files / ".statestore" / "trash").glob("*.bin") if b"alice" in path.read_bytes())
    packed.write_text(json.dumps([*json.loads(packed.read_bytes()), {"pinned": [1, 2]}]))
    with StateStore.open(files) as store:
        with pytest.raises(CorruptSession):
            store.restore_session("alice's trash")
        assert len(store.list_trash()) == 2
        assert not store.session_exists("alice's trash")
