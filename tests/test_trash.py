"""The trash beyond what every engine promises: its time, what is damaged in it, and copies of it."""

from __future__ import annotations

import itertools
import json
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from damages import ROWS, damage_session, url_of
from faces import Face
from hooked import CountingEngine
from statestore import CorruptSession, PruneConfig, SessionNotFound, StateStore, UserMessage, copy_store
from statestore.conformance.changes import created
from statestore.engine import Change, ChangeSession, DeleteDocument, NewRecord, Outcome
from statestore.engines.memory import MemoryEngine
from statestore.host import step

HOUR_NS = 3_600_000_000_000
KEEP_ALL = PruneConfig(max_sessions=0, ttl_hours=0)


def talk(store: StateStore, session_id: str, user_id: str = "alice") -> None:
    session = store.get_or_create_session(user_id, session_id)
    session.add_user_message(f"hello {session_id}")
    store.save_session(session)


def trashed_ids(store: StateStore) -> list[str]:
    return [trashed.session.id for trashed in store.list_trash()]


def throw_away(store: StateStore, session_id: str, hours: int, ago: int, patch: pytest.MonkeyPatch) -> None:
    """As if it had been done so many hours ago."""
    then = time.time_ns() - ago * HOUR_NS
    with patch.context() as patched:
        patched.setattr(time, "time_ns", lambda: then)
        assert store.delete_session(session_id, trash_hours=hours)


def test_what_was_there_for_its_time_is_removed_by_a_prune_and_nothing_else_is(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session_id, hours, ago in (("over", 1, 2), ("not yet", 3, 2), ("long over", 1, 99), ("later", 100, 99)):
        talk(store, session_id)
        throw_away(store, session_id, hours, ago, monkeypatch)
    assert len(trashed_ids(store)) == 4
    store.prune_sessions(KEEP_ALL, dry_run=True)
    assert len(trashed_ids(store)) == 4
    assert store.prune_sessions(KEEP_ALL) == 0
    assert trashed_ids(store) == ["not yet", "later"]


def test_a_users_prune_leaves_the_trash_of_others_alone(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for user_id in ("alice", "bob"):
        talk(store, user_id, user_id)
        throw_away(store, user_id, 1, 2, monkeypatch)
    store.for_user("alice").prune_sessions(KEEP_ALL)
    assert trashed_ids(store) == ["bob"]


class _Overtaken(MemoryEngine):
    """Somebody else removes the first ones from the trash just before we do."""

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        if isinstance(batch[0], DeleteDocument):
            await super().commit(batch[:10])
        return await super().commit(batch)


def test_what_somebody_else_removed_from_the_trash_is_not_counted() -> None:
    with StateStore.open(_Overtaken()) as store:
        for number in range(20):
            talk(store, f"s{number}")
            store.delete_session(f"s{number}", trash_hours=1)
        assert store.empty_trash() == 20 - 10 // 2


def test_who_restores_one_session_or_prunes_one_user_does_not_read_the_whole_trash() -> None:
    engine = CountingEngine(MemoryEngine())
    with StateStore.open(engine) as store:
        for number in range(120):
            talk(store, f"s{number}", f"user-{number}")
            store.delete_session(f"s{number}", trash_hours=1)
        engine.asked.clear()
        assert store.restore_session("s7").user_messages[0].content == "hello s7"
        assert engine.asked["get_document"] == 2  # its note and itself
        engine.asked.clear()
        store.for_user("newcomer").prune_sessions(KEEP_ALL)
        assert engine.asked["get_document"] == 0
        engine.commits.clear()
        assert store.empty_trash() == 119
        assert len(engine.commits) == 3
        assert store.list_trash() == []


def test_a_full_trash_is_listed_in_a_few_pages_of_which_the_first_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statestore.store.in_trash.FIRST_PAGE", 4)
    engine = CountingEngine(MemoryEngine())
    with StateStore.open(engine) as store:
        for number in range(100):
            talk(store, f"s{number}")
            store.delete_session(f"s{number}", trash_hours=1)
        engine.asked.clear()
        assert len(trashed_ids(store)) == 100
        assert engine.asked["list_documents"] <= 7
        engine.asked.clear()
        store.prune_sessions(KEEP_ALL)
        assert engine.asked["list_documents"] == 1
        assert store.empty_trash() == 100


def test_what_is_searched_and_watched_does_not_come_from_the_trash(files_store: StateStore) -> None:
    talk(files_store, "s")
    assert len(files_store.search_sessions("hello")) == 1
    files_store.delete_session("s", trash_hours=1)
    assert files_store.search_sessions("hello") == []
    files_store.restore_session("s")
    assert len(files_store.search_sessions("hello")) == 1


def test_a_session_that_cannot_be_read_is_not_thrown_away(
    directory: Path, files_store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    for session_id in ("bad", "good"):
        talk(files_store, session_id)
    files_store.list_sessions()
    path = directory / "sessions" / "bad.json"
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(CorruptSession):
        files_store.delete_session("bad", trash_hours=1)
    with caplog.at_level(logging.WARNING):
        files_store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0, max_sessions_per_user=1, trash_hours=1))
    assert path.exists()
    assert trashed_ids(files_store) == []


@pytest.mark.parametrize("kind", ROWS)
def test_a_session_whose_layout_is_damaged_can_be_loaded_and_is_not_thrown_away(
    face: Face, kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = face.open(url := url_of(kind, tmp_path))
    for session_id in ("bad", "good"):
        talk(store, session_id)
        store.update_session_with(session_id, lambda session: session.set_metadata("k", 1))
    damage_session(kind, url, "layout")
    session = store.load_session("bad")
    assert session is not None
    assert session.user_messages[0].content == "hello bad"
    assert [(problem.where, "layout" in problem.what) for problem in store.check()] == [("session bad", True)]
    with pytest.raises(CorruptSession, match="bad"):
        store.delete_session("bad", trash_hours=1)
    with caplog.at_level(logging.WARNING):
        store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0, max_sessions_per_user=1, trash_hours=1))
    assert "session bad cannot be put into the trash, and stays" in caplog.text
    assert trashed_ids(store) == []
    assert store.session_exists("bad")
    assert store.delete_session("bad")


def test_a_session_that_could_not_be_restored_is_not_thrown_away(face: Face) -> None:
    engine = MemoryEngine()
    store = face.open(engine)
    step(engine.commit([created("s", NewRecord("user", b'{"content":"hello","timestamp":"then"}', 0))]))
    with pytest.raises(CorruptSession, match="'then'"):
        store.delete_session("s", trash_hours=1)
    assert store.session_exists("s")


def test_a_damaged_note_hides_nothing_else(
    directory: Path, files_store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    for session_id in ("one", "two"):
        talk(files_store, session_id)
        files_store.delete_session(session_id, trash_hours=1)
    (note,) = [path for path in (directory / ".statestore" / "trash").glob("*.json") if b'"one"' in path.read_bytes()]
    note.write_bytes(b"{")
    with caplog.at_level(logging.WARNING):
        assert trashed_ids(files_store) == ["two"]
    assert note.name in caplog.text
    files_store.prune_sessions(KEEP_ALL)
    assert note.exists()
    assert files_store.restore_session("two").id == "two"


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize("way", ["erase", "empty", "empty hers", "prune"])
def test_what_lies_in_the_trash_without_its_note_is_removed_with_the_rest(
    way: str, is_gone: bool, files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(files_store, "his", "bob")
    files_store.delete_session("his", trash_hours=1)
    talk(files_store, "hers")
    throw_away(files_store, "hers", 3, 2 if way != "prune" else 5, monkeypatch)
    trash = directory / ".statestore" / "trash"
    (note,) = (path for path in trash.glob("*.json") if b"alice" in path.read_bytes())
    if is_gone:
        note.unlink()
    else:
        note.write_bytes(b"{")
    if way == "erase":
        files_store.erase_user("alice")
    elif way == "prune":
        files_store.prune_sessions(KEEP_ALL)
    else:
        (files_store if way == "empty" else files_store.for_user("alice")).empty_trash()
    assert not any(b"hello hers" in path.read_bytes() for path in trash.iterdir())
    assert trashed_ids(files_store) == ([] if way == "empty" else ["his"])


def test_what_is_left_of_a_user_without_a_name_is_removed_like_any_others(
    files_store: StateStore, directory: Path
) -> None:
    talk(files_store, "hers", "")
    files_store.delete_session("hers", trash_hours=1)
    for path in (directory / ".statestore" / "trash").glob("*.bin"):
        path.unlink()
    assert trashed_ids(files_store) == ["hers"]
    assert files_store.for_user("").empty_trash() == 1
    assert trashed_ids(files_store) == []


@pytest.mark.parametrize("has_been_written_to", [False, True])
def test_who_restores_item_by_item_what_somebody_else_removes_meanwhile_brings_nothing_back(
    has_been_written_to: bool,
) -> None:
    engine = CountingEngine(MemoryEngine(), "item")
    with StateStore.open(engine) as store:
        talk(store, "s")
        store.delete_session("s", trash_hours=1)

        def empty_the_trash(batch: Sequence[Change]) -> None:
            if isinstance(batch[0], ChangeSession):
                engine.after = None
                store.empty_trash()
                if has_been_written_to:
                    store.append("s", UserMessage("mine"))

        engine.after = empty_the_trash
        with pytest.raises(SessionNotFound, match="taken out of the trash"):
            store.restore_session("s")
        assert store.session_exists("s") == has_been_written_to, "what somebody has written to is theirs"


def test_a_content_whose_metadata_are_no_object_is_damaged(files_store: StateStore, directory: Path) -> None:
    talk(files_store, "s")
    files_store.delete_session("s", trash_hours=1)
    (path,) = (directory / ".statestore" / "trash").glob("*.bin")
    packed = json.loads(path.read_bytes())
    assert packed[3] == {}
    path.write_text(json.dumps([*packed[:3], [1], *packed[4:]]))
    with pytest.raises(CorruptSession):
        files_store.restore_session("s")


def test_a_copy_takes_the_trash_along(tmp_path: Path) -> None:
    places = [tmp_path / "first", tmp_path / "second.db", tmp_path / "third"]
    with StateStore.open(places[0]) as store:
        for session_id in ("kept", "gone"):
            talk(store, session_id)
        store.delete_session("gone", trash_hours=1)
    for source, target in itertools.pairwise(places):
        copy_store(source, target)
    with StateStore.open(places[-1]) as store:
        assert trashed_ids(store) == ["gone"]
        assert store.restore_session("gone").user_messages[0].content == "hello gone"
    assert len(os.listdir(places[0] / ".statestore" / "trash")) == 2
