"""Files that cannot be read: each is an error that names it and the reason, none is touched, none stops the others."""

from __future__ import annotations

import logging
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_bytes import BAD_JSON, BAD_SESSIONS, GOOD_SESSIONS, session_text
from contents import snapshot

from nobody import as_nobody
from statestore import (
    CorruptDocument,
    CorruptSession,
    PruneConfig,
    Session,
    StateStore,
    StateStoreError,
    StoreUnavailable,
    UserMessage,
)

SAMPLE = session_text()


@pytest.fixture
def path(root: Path, store: StateStore) -> Path:
    """Where a bad session goes, beside two good ones."""
    for name in ("good-1", "good-2"):
        session = Session("alice", name)
        session.add_user_message("hello")
        store.save_session(session)
    return root / "sessions" / "bad.json"


def _check_reported(store: StateStore, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What every bad session file must meet with."""
    before = snapshot(path.parent.parent)
    with pytest.raises(StateStoreError) as raised:
        store.load_session("bad")
    assert isinstance(raised.value, (CorruptSession, StoreUnavailable))
    assert "bad.json" in str(raised.value)
    for write in (
        lambda: store.append("bad", UserMessage("more")),
        lambda: store.save_session(Session("alice", "bad")),
        lambda: store.get_or_create_session("alice", "bad"),
        lambda: store.rewind_session("bad", to=0),
        lambda: store.fork_session("bad"),
        lambda: store.load_json("sessions", "bad"),
        lambda: store.timeline("bad"),
    ):
        with pytest.raises(StateStoreError) as raised:
            write()
        assert "bad" in str(raised.value)
    for _ in range(2):
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="statestore"):
            assert [summary.id for summary in store.list_sessions(order="id")] == ["good-1", "good-2"]
        assert [record for record in caplog.records if "bad" in record.getMessage()], "no warning names it"
    assert store.count_sessions() == 2
    assert [problem.where for problem in store.check()] == ["sessions/bad.json"]
    assert store.prune_sessions(PruneConfig(max_sessions=2, ttl_hours=0)) == 0
    assert snapshot(path.parent.parent) == before


def _visible(found: dict[bytes, tuple[object, ...]]) -> dict[bytes, tuple[object, ...]]:
    return {name: entry for name, entry in found.items() if b"/.statestore" not in name}


@pytest.mark.parametrize("bad", BAD_SESSIONS)
def test_a_bad_session_is_reported_and_left_as_it_is(
    bad: str, path: Path, store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(BAD_SESSIONS[bad])
    _check_reported(store, path, caplog)


@pytest.mark.parametrize("bad", BAD_SESSIONS)
def test_a_bad_session_can_be_deleted(bad: str, path: Path, store: StateStore) -> None:
    path.write_bytes(BAD_SESSIONS[bad])
    assert store.delete_session("bad")
    assert not path.exists()
    assert store.get_or_create_session("alice", "bad").is_empty
    assert store.check() == []


def test_a_session_cut_at_any_byte_is_reported_and_left_as_it_is(path: Path, store: StateStore) -> None:
    wrong: list[str] = []
    for size in range(len(SAMPLE)):
        path.write_bytes(SAMPLE[:size])
        for act in (
            lambda: store.load_session("bad"),
            lambda: store.append("bad", UserMessage("more")),
        ):
            try:
                act()
                wrong.append(f"{size}: taken for a session")
            except CorruptSession as error:
                if "bad.json" not in str(error):
                    wrong.append(f"{size}: {error}")
            except Exception as error:  # noqa: BLE001 - counted with the others
                wrong.append(f"{size}: {error!r}")
        if path.read_bytes() != SAMPLE[:size]:
            wrong.append(f"{size}: changed")
    assert wrong == []


def test_a_session_cut_at_any_byte_does_not_stop_a_listing_or_a_check(path: Path, store: StateStore) -> None:
    for size in range(len(SAMPLE)):
        (path.parent / f"cut-{size}.json").write_bytes(SAMPLE[:size])
    assert [summary.id for summary in store.list_sessions(order="id")] == ["good-1", "good-2"]
    assert len(store.check()) == len(SAMPLE)


@pytest.mark.parametrize("good", GOOD_SESSIONS)
def test_an_unusual_session_is_a_session(good: str, path: Path, store: StateStore) -> None:
    path.write_bytes(GOOD_SESSIONS[good])
    expected = store.load_json("sessions", "bad")
    session = store.load_session("bad")
    assert session is not None
    contents = [message.content for message in session.user_messages]
    assert contents == [message["content"] for message in expected.get("user_messages", [])]
    assert len(store.list_sessions()) == 3
    assert store.check() == []
    store.append("bad", UserMessage("more"))
    session.set_metadata("ours", 1)
    store.save_session(session)
    again = store.load_session("bad")
    assert again is not None
    assert [message.content for message in again.user_messages] == [*contents, "more"]
    assert again.metadata == expected.get("metadata", {}) | {"ours": 1}


def test_what_stands_where_a_session_belongs_is_reported_and_left_as_it_is(
    path: Path, store: StateStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(session_text("bad"))
    stranger = snapshot(tmp_path)[os.fsencode(outside)]
    listener = socket.socket(socket.AF_UNIX)

    def bind() -> None:
        here = os.open(path.parent, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/bad.json")
        os.close(here)

    makers: dict[str, Callable[[], object]] = {
        "a link that leads nowhere": lambda: path.symlink_to(tmp_path / "nowhere.json"),
        "a link that leads out of the store": lambda: path.symlink_to(outside),
        "a link to another session": lambda: path.symlink_to("good-1.json"),
        "a link to itself": lambda: path.symlink_to("bad.json"),
        "a pipe": lambda: os.mkfifo(path),
        "a socket": bind,
        "a directory": path.mkdir,
    }
    for make in makers.values():
        make()
        _check_reported(store, path, caplog)
        with pytest.raises(StateStoreError, match="bad"):
            store.delete_session("bad")
        assert os.path.lexists(path)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    listener.close()
    assert snapshot(tmp_path)[os.fsencode(outside)] == stranger


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_a_file_as_the_sessions_directory_is_not_followed(kind: str, root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "bad.json").write_bytes(SAMPLE)
    with StateStore.open(root) as store:
        sessions = root / "sessions"
        sessions.symlink_to(elsewhere) if kind == "link" else sessions.write_text("no directory")
        before = snapshot(tmp_path)
        acts: list[Callable[[], object]] = [
            lambda: store.load_session("bad"),
            lambda: store.list_sessions(),
            lambda: store.append("bad", UserMessage("x")),
            lambda: store.save_session(Session("alice", "new")),
            lambda: store.delete_session("bad"),
            lambda: store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1)),
        ]
        for act in acts:
            with pytest.raises(StoreUnavailable, match="sessions"):
                act()
        assert [problem.where for problem in store.check()] == ["sessions"]
        with store.batch() as batch:
            batch.save_markdown("notes", "today", "works")
            batch.save_markdown("notes", "tomorrow", "works")
        assert store.load_markdown("notes", "today") == "works"
        shutil.rmtree(root / "notes")
        assert _visible(snapshot(tmp_path)) == _visible(before)


def test_names_that_nobody_could_have_given_are_reported_and_left_as_they_are(
    path: Path, store: StateStore, caplog: pytest.LogCaptureFixture
) -> None:
    names = [b"\xff\xfe.json", b"a..b.json", b".json", b"x\x07y.json", b"b\\c.json", b"n" * 230 + b".json"]
    for name in names:
        with open(os.path.join(os.fsencode(path.parent), name), "wb") as file:
            file.write(session_text(os.fsdecode(name)[:-5].encode("utf-8", "replace").decode()))
    before = snapshot(path.parent.parent)
    for _ in range(2):
        assert [summary.id for summary in store.list_sessions(order="id")] == ["good-1", "good-2"]
    assert len(caplog.records) >= len(names) - 1
    problems = store.check()
    assert len(problems) == len(names)
    for problem in problems:
        f"{problem.where} {problem.what}".encode()  # can be printed
    assert store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 1
    left = snapshot(path.parent.parent)
    assert {name: entry for name, entry in before.items() if b"good" not in name} == {
        name: entry for name, entry in left.items() if b"good" not in name
    }


def test_a_planted_copy_never_makes_a_prune_delete_the_original(path: Path, store: StateStore) -> None:
    original = session_text("good-1", updated_at="2020-01-01T00:00:00Z")
    path.write_bytes(original)
    (path.parent / "also.json").write_bytes(original)
    before = snapshot(path.parent.parent)
    doomed = store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1), dry_run=True)
    assert doomed == []
    assert store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1)) == 0
    assert store.erase_user("bob") == 0
    assert snapshot(path.parent.parent) == before
    assert store.session_exists("good-1")


@pytest.mark.parametrize("bad", BAD_JSON)
def test_a_bad_document_is_reported_and_left_as_it_is(bad: str, root: Path, store: StateStore) -> None:
    store.save_json("agents", "good", {"a": 1})
    (root / "agents" / "bad.json").write_bytes(BAD_JSON[bad])
    before = snapshot(root)
    with pytest.raises(CorruptDocument, match=r"agents/bad\.json"):
        store.load_json("agents", "bad")
    document = store.get_document("agents", "bad")
    assert document is not None
    assert document.body == BAD_JSON[bad]
    assert store.list_category("agents") == ["bad", "good"]
    assert [problem.where for problem in store.check()] == ["agents/bad.json"]
    assert snapshot(root) == before
    store.save_json("agents", "bad", "mended", if_version=document.version)
    assert store.load_json("agents", "bad") == "mended"


def test_a_text_that_is_not_utf_8_is_reported_and_left_as_it_is(root: Path, store: StateStore) -> None:
    store.save_markdown("notes", "bad", "x")
    (root / "notes" / "bad.md").write_bytes(b"\xff\xfe")
    before = snapshot(root)
    with pytest.raises(CorruptDocument, match=r"notes/bad\.md"):
        store.load_markdown("notes", "bad")
    assert [problem.where for problem in store.check()] == ["notes/bad.md"]
    assert snapshot(root) == before


def test_what_stands_where_a_document_belongs_is_reported_and_left_as_it_is(
    root: Path, store: StateStore, tmp_path: Path
) -> None:
    store.save_json("agents", "good", 1)
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    path = root / "agents" / "bad.json"
    makers: list[Callable[[], object]] = [
        path.mkdir,
        lambda: path.symlink_to(outside),
        lambda: path.symlink_to(tmp_path / "nowhere"),
        lambda: os.mkfifo(path),
    ]
    for make in makers:
        make()
        before = snapshot(tmp_path)
        acts: list[Callable[[], object]] = [
            lambda: store.load_json("agents", "bad"),
            lambda: store.save_json("agents", "bad", 1),
            lambda: store.delete_file("agents", "bad", kind="json"),
        ]
        for act in acts:
            with pytest.raises(StateStoreError, match=r"bad\.json"):
                act()
        assert [problem.where for problem in store.check()] == ["agents/bad.json"]
        assert _visible(snapshot(tmp_path)) == _visible(before)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def test_document_names_that_are_not_utf_8_do_not_stop_a_category_from_being_listed_or_deleted(
    root: Path, store: StateStore
) -> None:
    store.save_markdown("notes", "good", "x")
    strange = os.path.join(os.fsencode(root), b"notes", b"\xff\xfe.md")
    with open(strange, "wb") as file:
        file.write(b"kept or deleted, but no crash")
    assert "good" in store.list_category("notes")
    assert len(store.check()) == 1
    assert store.delete_category("notes") >= 1
    assert store.load_markdown("notes", "good") is None


def test_a_session_that_may_not_be_read_is_reported_and_comes_back_when_it_may(path: Path, store: StateStore) -> None:
    root = path.parent.parent
    path.write_bytes(SAMPLE)
    store.close()

    def work() -> None:
        path.chmod(0)
        with StateStore.open(root) as mine:
            with pytest.raises(StoreUnavailable, match=r"bad\.json.*Permission denied"):
                mine.load_session("bad")
            with pytest.raises(StoreUnavailable, match=r"bad\.json"):
                mine.append("bad", UserMessage("x"))
            for _ in range(2):
                assert [summary.id for summary in mine.list_sessions(order="id")] == ["good-1", "good-2"]
            assert [problem.where for problem in mine.check()] == ["sessions/bad.json"]
            path.chmod(0o644)
            assert mine.load_session("bad") is not None
            assert [summary.id for summary in mine.list_sessions(order="id")] == ["bad", "good-1", "good-2"]
        with StateStore.open(root) as later:
            assert [summary.id for summary in later.list_sessions(order="id")] == ["bad", "good-1", "good-2"]

    as_nobody(work, root)
    assert path.read_bytes() == SAMPLE


def test_a_batch_into_a_directory_that_may_not_be_written_happens_not_at_all(path: Path, store: StateStore) -> None:
    root = path.parent.parent
    store.save_markdown("open", "one", "old")
    store.save_markdown("shut", "one", "old")
    store.close()

    def work() -> None:
        (root / "shut").chmod(0o555)
        with StateStore.open(root) as mine:
            with pytest.raises(StoreUnavailable), mine.batch() as batch:
                batch.save_markdown("open", "one", "new")
                batch.save_markdown("shut", "one", "new")
            assert mine.load_markdown("open", "one") == "old"
            assert mine.load_markdown("shut", "one") == "old"
            assert mine.session_exists("good-1")
            mine.save_markdown("open", "one", "newer")

    as_nobody(work, root)


def test_a_store_that_may_only_be_read_can_be_read(path: Path, store: StateStore) -> None:
    root = path.parent.parent
    store.save_markdown("notes", "today", "hello")
    store.list_sessions()
    store.close()
    before = snapshot(root)

    def work() -> None:
        with StateStore.open(root, read_only=True) as mine:
            assert mine.load_session("good-1") is not None
            assert mine.load_markdown("notes", "today") == "hello"
            assert len(mine.list_sessions()) == 2
            assert mine.list_category("notes") == ["today"]
            assert mine.list_categories() == ["notes"]
            assert mine.check() == []

    as_nobody(work, root, is_owner=False)
    assert snapshot(root) == before


def test_opening_for_reading_writes_nothing_at_all(path: Path, store: StateStore) -> None:
    root = path.parent.parent
    store.close()
    shutil.rmtree(root / ".statestore" / "locks")
    before = sorted(str(found) for found in root.rglob("*"))
    with StateStore.open(root, read_only=True) as mine:
        assert len(mine.list_sessions()) == 2
        assert mine.check() == []
    assert sorted(str(found) for found in root.rglob("*")) == before
