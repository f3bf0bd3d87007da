"""What the Rust program gets wrong, and this library must not: one test for each."""

from __future__ import annotations

import json
import logging
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from faces import Face, Place
from hooked import HookedEngine
from snapshots import snapshot, visible
from statestore import (
    CorruptSession,
    Event,
    InvalidName,
    PruneConfig,
    Session,
    StateStore,
    UserMessage,
    WrongUser,
)
from statestore.engines.files import sessions as session_files

OLD = datetime(2020, 1, 1, tzinfo=UTC)
HUGE = (2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30)


def loaded(store: StateStore, session_id: str = "s") -> Session:
    session = store.load_session(session_id)
    assert session is not None
    return session


def test_two_load_add_save_keep_both_messages(store: StateStore, other: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    mine, theirs = loaded(store), loaded(other)
    mine.add_user_message("mine")
    theirs.add_user_message("theirs")
    store.save_session(mine)
    other.save_session(theirs)
    assert [message.content for message in loaded(store).user_messages] == ["mine", "theirs"]


def test_a_save_sends_what_is_new_and_not_the_whole_session(face: Face, place: Place) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine)  # type: ignore[arg-type]
    session = Session("alice", "s")
    for number in range(100):
        session.add_user_message(str(number))
    session.set_metadata("k", "v" * 1000)
    store.save_session(session)
    session.add_user_message("new")
    store.save_session(session)
    (change,) = engine.commits[-1]
    assert [json.loads(record.body)["content"] for record in change.append] == ["new"]  # type: ignore[union-attr]
    assert not change.set_metadata  # type: ignore[union-attr]
    assert change.truncate_after is None  # type: ignore[union-attr]


def test_list_and_prune_parse_only_what_changed(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        files_store.save_session(Session("alice", f"s{number}"))
        os.utime(directory / "sessions" / f"s{number}.json", (number, number))  # a file just written is read twice
    files_store.list_sessions()
    parsed: list[bytes] = []

    class Counted(session_files.SessionText):
        __slots__ = ()

        def __init__(self, text: bytes) -> None:
            parsed.append(text)
            super().__init__(text)

    monkeypatch.setattr(session_files, "SessionText", Counted)
    assert len(files_store.list_sessions()) == 20
    assert files_store.prune_sessions(PruneConfig(max_sessions=20)) == 0
    assert parsed == []


def test_nothing_temporary_is_left_after_a_write_that_failed(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session("alice", "s")
    files_store.save_session(session)
    before = visible(directory)
    session.add_user_message("m")

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        with pytest.raises(Exception, match="No space left"):
            files_store.save_session(session)
    assert visible(directory) == before
    assert list((directory / ".statestore" / "tmp").iterdir()) == []
    files_store.save_session(session)
    assert [message.content for message in loaded(files_store).user_messages] == ["m"]


def test_every_write_is_flushed_before_it_is_acknowledged(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        flushed.append(os.fstat(fd).st_ino)
        real(fd)

    with StateStore.open(directory) as store:
        store.save_session(Session("alice", "before"))
        monkeypatch.setattr(os, "fsync", fsync)
        store.save_session(Session("alice", "s"))
        path = directory / "sessions" / "s.json"
        assert flushed == [path.stat().st_ino, path.parent.stat().st_ino], "the file, then its directory"


@pytest.mark.parametrize("bad", ["../outside", "/outside", "..", "a/../../outside", "sessions/../x"])
def test_no_id_deletes_outside_the_store(files_store: StateStore, directory: Path, bad: str) -> None:
    outside = directory.parent / "outside.json"
    outside.write_text("precious", encoding="utf-8")
    before = snapshot(directory.parent)
    for session_id in (bad, str(outside.with_suffix(""))):
        with pytest.raises(InvalidName):
            files_store.delete_session(session_id)
    assert snapshot(directory.parent) == before


def test_prune_deletes_by_the_files_name_and_never_by_the_id_inside(files_store: StateStore, directory: Path) -> None:
    session = Session("alice", "victim")
    files_store.save_session(session)
    planted = json.loads((directory / "sessions" / "victim.json").read_text(encoding="utf-8"))
    planted["updated_at"] = "2001-01-01T00:00:00Z"
    (directory / "sessions" / "planted.json").write_text(json.dumps(planted), encoding="utf-8")
    assert files_store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=24)) == 0
    assert files_store.session_exists("victim")
    assert (directory / "sessions" / "planted.json").exists(), "nothing is deleted because it could not be read"
    assert any("planted" in problem.where for problem in files_store.check())


def test_get_or_create_does_not_hand_alices_session_to_bob(store: StateStore) -> None:
    alices = store.get_or_create_session("alice")
    with pytest.raises(WrongUser):
        store.get_or_create_session("bob", alices.id)


def test_listing_and_deleting_know_the_user(store: StateStore) -> None:
    store.save_session(Session("alice", "a"))
    store.save_session(Session("bob", "b"))
    assert [summary.id for summary in store.list_sessions(user_id="bob")] == ["b"]
    assert store.for_user("bob").delete_session("a") is False
    assert store.session_exists("a")


@pytest.mark.parametrize("hours", HUGE)
def test_a_huge_ttl_deletes_nothing(store: StateStore, hours: int) -> None:
    session = Session("alice", "s")
    session.updated_at = OLD
    store.save_session(session)
    assert store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=hours)) == 0
    assert store.session_exists("s")


def test_prune_counts_what_it_really_deleted(face: Face, place: Place) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine)  # type: ignore[arg-type]
    rival = StateStore.open(place.engine())
    for name in ("gone", "old"):
        session = Session("alice", name)
        session.updated_at = OLD
        store.save_session(session)

    def delete_one_first(_: Any) -> None:
        engine.before = None
        rival.delete_session("gone")

    engine.before = delete_one_first
    assert store.prune_sessions(PruneConfig(ttl_hours=1)) == 1
    assert store.count_sessions() == 0
    rival.close()


def test_a_session_saved_between_the_listing_and_the_delete_lives(face: Face, place: Place) -> None:
    engine = HookedEngine(place.engine())
    store = face.open(engine)  # type: ignore[arg-type]
    rival = StateStore.open(place.engine())
    for name in ("saved", "old"):
        session = Session("alice", name)
        session.updated_at = OLD
        store.save_session(session)

    def save_one_first(_: Any) -> None:
        engine.before = None
        rival.append("saved", UserMessage("still here"))

    engine.before = save_one_first
    assert store.prune_sessions(PruneConfig(ttl_hours=1)) == 1
    assert [summary.id for summary in store.list_sessions()] == ["saved"]
    rival.close()


def test_a_corrupt_file_is_reported_and_does_not_hide(
    files_store: StateStore, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files_store.save_session(Session("alice", "good"))
    bad = directory / "sessions" / "bad.json"
    bad.write_bytes(b'{"id": "bad"')
    with caplog.at_level(logging.WARNING, logger="statestore"):
        assert [summary.id for summary in files_store.list_sessions()] == ["good"]
    assert any("bad.json" in record.getMessage() for record in caplog.records)
    assert [problem.where for problem in files_store.check()] == ["sessions/bad.json"]
    with pytest.raises(CorruptSession, match=r"bad\.json"):
        files_store.load_session("bad")
    assert bad.read_bytes() == b'{"id": "bad"'


def test_a_corrupt_file_does_not_block_its_id_for_ever(files_store: StateStore, directory: Path) -> None:
    files_store.save_session(Session("alice", "good"))
    (directory / "sessions" / "bad.json").write_bytes(b"")
    with pytest.raises(CorruptSession, match=r"bad\.json"):
        files_store.get_or_create_session("alice", "bad")
    assert files_store.delete_session("bad") is True
    assert files_store.get_or_create_session("alice", "bad").user_id == "alice"


def test_markdown_and_json_of_one_name_are_one_name(store: StateStore) -> None:
    store.save_markdown("notes", "x", "text")
    store.save_json("notes", "x", 1)
    store.save_bytes("notes", "x", b"b")
    assert store.list_category("notes") == ["x"]


def test_the_empty_name_is_refused(files_store: StateStore, directory: Path) -> None:
    for write in (
        lambda: files_store.save_json("notes", "", 1),
        lambda: files_store.save_markdown("notes", "", ""),
        lambda: files_store.get_or_create_session("alice", ""),
    ):
        with pytest.raises(InvalidName, match="empty"):
            write()
    assert not (directory / "notes").exists()


def test_long_names_work_up_to_the_limit_and_then_fail_as_names(store: StateStore) -> None:
    store.save_json("notes", "n" * 200, 1)
    assert store.load_json("notes", "n" * 200) == 1
    store.save_session(Session("alice", "s" * 200))
    assert store.session_exists("s" * 200)
    with pytest.raises(InvalidName, match="201 bytes"):
        store.save_json("notes", "n" * 201, 1)


@pytest.mark.parametrize(("ids", "project"), [("p1", "p1"), (["p1", "p2"], "p1"), ("p1,p2", "p1")])
def test_the_project_is_read_from_a_list_too(store: StateStore, ids: Any, project: str) -> None:
    session = Session("alice", "s")
    session.set_metadata("project_ids", ids)
    store.save_session(session)
    assert store.list_sessions()[0].project_id == project
    assert store.count_sessions(project_id=project) == 1


def test_which_answer_belongs_to_which_question_can_be_told(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("unanswered")
    session.add_user_message("question")
    session.add_agent_response("answer")
    session.events.append(Event("tool"))
    store.save_session(session)
    told = [getattr(entry.record, "content", entry.kind) for entry in loaded(store).timeline]
    assert told == ["unanswered", "question", "answer", "tool"]


def test_unknown_fields_survive_a_save(face: Face, tmp_path: Path) -> None:
    golden = Path(__file__).parent / "data" / "golden"
    shutil.copytree(golden, tmp_path / "golden")
    store = face.open(tmp_path / "golden")
    newer = "55555555-5555-4555-8555-555555555555"
    session = loaded(store, newer)
    session.add_user_message("m")
    store.save_session(session)
    before = json.loads((golden / "sessions" / f"{newer}.json").read_text(encoding="utf-8"))
    after = json.loads((tmp_path / "golden" / "sessions" / f"{newer}.json").read_text(encoding="utf-8"))
    for key in ("trajectory_steps", "reasoning_records"):
        assert after[key] == before[key]
    assert after["user_messages"][0] == before["user_messages"][0]
    assert after["agent_responses"] == before["agent_responses"]


def test_saving_with_prune_uses_the_throttle(face: Face, place: Place) -> None:
    store = face.open(place.engine(), prune_cooldown_secs=3600)
    for number in range(5):
        session = Session("alice", f"s{number}")
        session.updated_at = OLD + timedelta(days=number)
        store.save_session(session)
    config = PruneConfig(max_sessions=2, ttl_hours=0)
    for number in range(3):
        store.save_session_with_prune(Session("alice", f"new{number}"), config)
    store.close()
    reopened = face.open(place.engine())
    assert reopened.count_sessions() >= 2
    assert reopened.count_sessions() <= 4, "one prune happened, and no more than one"
