"""A writer died in a batch, and another program changed a file before anybody finished it: both are kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import deeds
import dying
import msgspec
import pytest
import rust_program
from contents import leftovers, snapshot

from children import forked
from statestore import AgentResponse, CorruptSession, Session, StateStore, StoreUnavailable
from statestore.records import decode_body
from words import user_words


def _batch(store: StateStore) -> Callable[[], object]:
    """Changes a session and two documents, one of them empty; a new session and a new document besides."""
    store.save_markdown("notes", "empty", "")
    session = store.load_session("first")
    assert session is not None
    session.add_user_message("ours")
    session.add_event("tool", {"z": 1, "a": 2})
    session.set_metadata("colour", "blue")
    new = Session("alice", "new")
    new.add_user_message("hello")

    def commit() -> None:
        with store.batch() as batch:
            batch.save_session(session)
            batch.save_session(new)
            batch.save_markdown("notes", "empty", "ours")
            batch.save_markdown("notes", "replaced", "ours")
            batch.save_markdown("notes", "new", "ours")

    return commit


def _left_by_the_dead(place: Path, prepared: Callable[[StateStore], Callable[[], object]]) -> list[Path]:
    """Directories with a journal, one for each point at which the writer of a batch may have died."""
    root = place / "state"
    found: list[Path] = []
    for nth in range(1, 200):
        shutil.rmtree(root, ignore_errors=True)
        with StateStore.open(root, durability="relaxed") as store:
            deeds.furnish(store)

        def work(acknowledge: Callable[[str], None], nth: int = nth) -> None:
            store = StateStore.open(root)
            commit = prepared(store)
            dying.die_before(nth)
            commit()
            acknowledge("done")

        ended = forked(work)
        assert not ended.error, ended.error
        if not ended.was_killed:
            assert len(found) > 3
            return found
        if "journal" in leftovers(root):
            found.append(place / f"dead-{nth}")
            shutil.copytree(root, found[-1])
    pytest.fail("the batch never came to its end")


@pytest.fixture(scope="module")
def graves(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the dead left of the batch above; to be copied."""
    return _left_by_the_dead(tmp_path_factory.mktemp("graves"), _batch)


@pytest.fixture
def dead_batches(graves: list[Path], tmp_path: Path) -> list[Path]:
    """A copy of each, for one test."""
    return [Path(shutil.copytree(grave, tmp_path / grave.name)) for grave in graves]


def test_another_programs_message_and_our_batch_are_both_there_once(dead_batches: list[Path]) -> None:
    for dead in dead_batches:
        rust_program.say(dead, "first", "theirs")
        with StateStore.open(dead) as store:
            session = store.load_session("first")
            assert session is not None
            assert sorted(user_words(store, "first")) == ["first: question", "ours", "theirs"]
            assert [event.data for event in session.events] == [{"name": "first"}, {"z": 1, "a": 2}]
            assert session.metadata == {"colour": "blue"}
            assert user_words(store, "new") == ["hello"]
            assert [store.load_markdown("notes", name) for name in ("replaced", "new")] == ["ours", "ours"]
            assert leftovers(dead) == []
            assert store.check() == []


def test_another_programs_later_word_on_a_document_stays(dead_batches: list[Path]) -> None:
    for dead in dead_batches:
        rust_program.write(dead / "notes" / "replaced.md", b"theirs")
        with StateStore.open(dead) as store:
            assert store.load_markdown("notes", "replaced") == "theirs"
            assert user_words(store, "first") == ["first: question", "ours"]
            assert leftovers(dead) == []


def test_a_response_with_fields_that_the_other_program_drops_is_there_once(tmp_path: Path) -> None:
    body = '{"content":"ours","timestamp":"2026-01-01T00:00:00.123456Z","tokens":7}'

    def prepared(store: StateStore) -> Callable[[], object]:
        session = store.load_session("first")
        response = decode_body("agent", body.encode())
        assert session is not None
        assert isinstance(response, AgentResponse)
        assert msgspec.json.decode(body)["tokens"] == response.extra["tokens"]
        session.add_agent_response(response)

        def commit() -> None:
            with store.batch() as batch:
                batch.save_session(session)
                batch.save_markdown("notes", "new", "ours")

        return commit

    for dead in _left_by_the_dead(tmp_path, prepared):
        rust_program.say(dead, "first", "theirs")
        with StateStore.open(dead) as store:
            session = store.load_session("first")
            assert session is not None
            assert [response.content for response in session.agent_responses].count("ours") == 1


def test_what_the_other_program_added_after_our_rewrite_of_history_stays(tmp_path: Path) -> None:
    def prepared(store: StateStore) -> Callable[[], object]:
        session = store.load_session("first")
        assert session is not None
        del session.events[-1]

        def commit() -> None:
            with store.batch() as batch:
                batch.save_session(session)
                batch.save_markdown("notes", "new", "ours")

        return commit

    for dead in _left_by_the_dead(tmp_path, prepared):
        rust_program.say(dead, "first", "theirs")
        with StateStore.open(dead) as store:
            assert user_words(store, "first") == ["first: question", "theirs"]


def test_a_new_file_that_was_deleted_meanwhile_does_not_stop_the_store(dead_batches: list[Path]) -> None:
    for dead in dead_batches:
        for name in ("notes/new.md", "sessions/new.json"):
            (dead / name).unlink(missing_ok=True)
        with StateStore.open(dead) as store:
            assert user_words(store, "first") == ["first: question", "ours"]
            assert store.load_markdown("notes", "replaced") == "ours"
            assert leftovers(dead) == []


def test_a_file_that_was_put_back_as_it_was_does_not_stop_the_store(dead_batches: list[Path]) -> None:
    for dead in dead_batches:
        rust_program.write(dead / "notes" / "replaced.md", b"old")
        with StateStore.open(dead) as store:
            assert store.load_markdown("notes", "replaced") in ("old", "ours")
            assert user_words(store, "first") == ["first: question", "ours"]
            assert leftovers(dead) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{\n  "id": 7\n}'], ids=["empty", "cut", "array", "no session"])
def test_a_session_that_was_damaged_meanwhile_does_not_stop_the_others(damage: bytes, dead_batches: list[Path]) -> None:
    for dead in dead_batches[::3]:
        rust_program.write(dead / "sessions" / "first.json", damage)
        with StateStore.open(dead) as store:
            assert user_words(store, "second") == ["second: question"]
            assert store.load_markdown("notes", "replaced") == "ours"
            with pytest.raises(CorruptSession, match=r"first\.json"):
                store.load_session("first")
            assert (dead / "sessions" / "first.json").read_bytes() == damage
            assert leftovers(dead) == []


@pytest.mark.parametrize("name", ["notes/empty.md", "notes/new.md", "sessions/first.json"])
@pytest.mark.parametrize(
    ("kind", "place_instead"),
    [("directory", Path.mkdir), ("link", lambda path: path.symlink_to("elsewhere")), ("pipe", os.mkfifo)],
    ids=["directory", "link", "pipe"],
)
def test_what_is_no_file_by_now_is_left_alone_and_told_once_and_does_not_stop_the_others(
    kind: str,
    place_instead: Callable[[Path], None],
    name: str,
    dead_batches: list[Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    for dead in dead_batches[::3]:
        path = dead / name
        path.unlink(missing_ok=True)
        place_instead(path)
        before = path.lstat()
        caplog.clear()
        with StateStore.open(dead) as store:
            (told,) = caplog.messages
            assert told.startswith(f"a batch whose writer died leaves this out: {name} is a {kind}")
            assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)
            assert user_words(store, "new") == ["hello"]
            assert store.load_markdown("notes", "replaced") == "ours"
            assert leftovers(dead) == []


def test_a_store_opened_for_reading_says_that_a_batch_is_unfinished_and_changes_nothing(
    dead_batches: list[Path],
) -> None:
    dead = dead_batches[0]
    before = snapshot(dead), json.dumps(leftovers(dead))
    with (
        StateStore.open(dead, read_only=True) as store,
        pytest.raises(StoreUnavailable, match="open it once for writing"),
    ):
        store.load_session("first")
    assert (snapshot(dead), json.dumps(leftovers(dead))) == before


def test_a_store_opened_for_reading_before_anybody_wrote_there_does_not_show_half_a_batch(
    dead_batches: list[Path], tmp_path: Path
) -> None:
    root = tmp_path / "read"
    root.mkdir()
    with StateStore.open(root, read_only=True) as reader:
        assert reader.list_sessions() == []
        shutil.copytree(dead_batches[-1], root, dirs_exist_ok=True)
        acts: list[Callable[[], object]] = [
            lambda: reader.load_session("first"),
            lambda: reader.load_markdown("notes", "new"),
            lambda: reader.list_sessions(),
            lambda: reader.list_category("notes"),
        ]
        for act in acts:
            with pytest.raises(StoreUnavailable, match="open it once for writing"):
                act()
        with StateStore.open(root) as writer:
            assert user_words(writer, "new") == ["hello"]
        assert user_words(reader, "new") == ["hello"]
        assert reader.load_markdown("notes", "new") == "ours"
