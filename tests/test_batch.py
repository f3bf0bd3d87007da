"""Several writes that happen together or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapshots import visible
from statestore import (
    AgentResponse,
    DocumentConflict,
    InvalidName,
    InvalidValue,
    Session,
    SessionConflict,
    SessionNotFound,
    StateStore,
    StoreClosed,
    UserMessage,
    WrongUser,
)


def test_everything_in_a_batch_happens(store: StateStore, other: StateStore) -> None:
    store.save_json("old", "a", 1)
    store.save_json("old", "b", 1)
    store.save_markdown("notes", "gone", "x")
    store.save_session(Session("alice", "gone"))
    kept = Session("alice", "kept")
    store.save_session(kept)
    with store.batch() as batch:
        batch.save_json("notes", "j", {"a": 1})
        batch.save_markdown("notes", "m", "text")
        batch.save_bytes("deep/er", "b", b"bytes")
        batch.delete_file("notes", "gone", kind="md")
        batch.delete_category("old")
        batch.delete_session("gone")
        batch.save_session(kept)
        fresh = Session("alice", "fresh")
        batch.save_session(fresh)
        kept.add_user_message("added inside the block")
        fresh.add_user_message("added inside the block")
        assert store.load_json("notes", "j") is None, "nothing is written before the block ends"
    for reader in (store, other):
        assert reader.load_json("notes", "j") == {"a": 1}
        assert reader.load_markdown("notes", "m") == "text"
        assert reader.load_bytes("deep/er", "b") == b"bytes"
        assert reader.list_categories() == ["deep/er", "notes"]
        assert reader.list_category("notes") == ["j", "m"]
        assert {s.id: s.message_count for s in reader.list_sessions()} == {"kept": 1, "fresh": 1}


def test_the_sessions_of_a_batch_know_that_they_are_stored(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("a")
    with store.batch() as batch:
        batch.save_session(session)
        batch.save_session(session)
    version = session.version
    assert version is not None
    store.save_session(session)
    assert session.version == version
    assert [entry.seq for entry in session.timeline] == [1]
    session.user_messages.clear()
    store.save_session(session)
    assert store.timeline("s") == []


def test_records_are_appended_in_a_batch_without_a_load(store: StateStore, other: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    store.save_session(Session("alice", "t"))
    for _ in range(2):
        with store.batch() as batch:
            batch.append("s", UserMessage("a"), AgentResponse("A"), keys=["k", None])
            batch.append("t", UserMessage("x"))
            batch.append("s", UserMessage("b"))
            batch.append("s")
            batch.save_json("orders", "1", {"open": True})
            assert store.timeline("t", after=1) == [], "nothing is written before the block ends"
    said = [(entry.seq, getattr(entry.record, "content", "")) for entry in other.timeline("s")]
    assert said == [(1, "a"), (2, "A"), (3, "b"), (4, "A"), (5, "b")], "what has a key is there once"
    assert len(other.timeline("t")) == 2
    assert other.load_json("orders", "1") == {"open": True}


def test_an_append_that_cannot_be_made_stops_the_batch(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    with pytest.raises(SessionNotFound, match="absent"), store.batch() as batch:
        batch.save_json("orders", "1", 1)
        batch.append("s", UserMessage("a"))
        batch.append("absent", UserMessage("a"))
    assert store.list_categories() == []
    assert store.timeline("s") == []
    with pytest.raises(InvalidValue, match="a record is"), store.batch() as batch:
        batch.append("s", "a text")  # pyright: ignore[reportArgumentType]
    with store.batch() as batch:
        pass
    with pytest.raises(StoreClosed, match="this batch is over"):
        batch.append("s", UserMessage("late"))


def test_an_error_in_the_block_leaves_everything_as_it_was(store: StateStore) -> None:
    session = Session("alice", "s")
    with pytest.raises(ZeroDivisionError), store.batch() as batch:
        batch.save_json("notes", "j", 1)
        batch.save_session(session)
        raise ZeroDivisionError
    assert store.list_categories() == []
    assert store.count_sessions() == 0
    store.save_session(session)
    assert store.session_exists("s")


@pytest.mark.parametrize("culprit", ["version", "exists", "stale", "missing", "wrong user"])
def test_one_that_cannot_be_made_stops_them_all(
    store: StateStore, other: StateStore, directory: Path, culprit: str
) -> None:
    store.save_json("notes", "j", 1)
    store.save_session(Session("alice", "taken"))
    mine = store.load_session("taken")
    assert mine is not None
    other.append("taken", UserMessage("theirs"))
    gone = Session("alice", "gone")
    store.save_session(gone)
    store.delete_session("gone")
    gone.add_user_message("m")
    before = visible(directory)
    expected = {
        "version": DocumentConflict,
        "exists": SessionConflict,
        "stale": SessionConflict,
        "missing": SessionNotFound,
        "wrong user": WrongUser,
    }[culprit]
    with pytest.raises(expected), store.batch() as batch:
        batch.save_json("notes", "first", 1)
        batch.delete_file("notes", "j", kind="json")
        if culprit == "version":
            batch.save_json("notes", "k", 2, if_version="no such version")
        elif culprit == "exists":
            batch.save_session(Session("alice", "taken"))
        elif culprit == "wrong user":
            batch.save_session(Session("bob", "taken"))
        elif culprit == "missing":
            batch.save_session(gone)
        else:
            mine.user_messages.append(UserMessage("x"))
            mine.metadata["k"] = 1
            store.append("taken", UserMessage("theirs too"))
            before = visible(directory)
            stale = other.load_session("taken")
            assert stale is not None
            stale.user_messages.clear()
            store.append("taken", UserMessage("and more"))
            before = visible(directory)
            batch.save_session(stale)
        batch.save_json("notes", "last", 1)
    assert visible(directory) == before
    assert store.list_category("notes") == ["j"]
    assert store.load_json("notes", "j") == 1


def test_versions_in_a_batch_are_those_before_it(store: StateStore) -> None:
    version = store.save_json("notes", "a", 1)
    with store.batch() as batch:
        batch.save_json("notes", "a", 2, if_version=version)
        batch.save_json("notes", "b", 2, if_version="")
    assert (store.load_json("notes", "a"), store.load_json("notes", "b")) == (2, 2)


def test_a_batch_names_each_item_once(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    for write in (
        lambda batch: (batch.save_json("notes", "a", 1), batch.save_json("notes", "a", 2)),
        lambda batch: (batch.save_json("notes", "a", 1), batch.delete_file("notes", "a", kind="json")),
        lambda batch: (batch.save_json("notes", "a", 1), batch.delete_category("notes")),
        lambda batch: (batch.delete_session("s"), batch.delete_session("s")),
        lambda batch: (batch.append("s", UserMessage("a")), batch.delete_session("s")),
    ):
        with pytest.raises(InvalidValue), store.batch() as batch:
            write(batch)
    assert store.list_categories() == []
    assert store.session_exists("s")


def test_one_name_may_have_several_kinds_in_a_batch(store: StateStore) -> None:
    with store.batch() as batch:
        batch.save_json("notes", "a", 1)
        batch.save_markdown("notes", "a", "x")
    assert [info.kind for info in store.list_documents("notes")] == ["json", "md"]


def test_an_empty_batch_is_no_work(store: StateStore, directory: Path) -> None:
    before = visible(directory)
    session = Session("alice", "s")
    with store.batch() as batch:
        assert batch is not None
    assert visible(directory) == before
    store.save_session(session)
    before = visible(directory)
    with store.batch() as batch:
        batch.save_session(session)
    assert visible(directory) == before


def test_deleting_what_is_not_there_is_no_error(store: StateStore) -> None:
    with store.batch() as batch:
        batch.delete_file("notes", "absent", kind="json")
        batch.delete_category("absent")
        batch.delete_session("absent")
        batch.save_json("notes", "a", 1)
    assert store.list_category("notes") == ["a"]


def test_bad_names_and_values_are_refused_where_they_are_given(store: StateStore) -> None:
    with pytest.raises(InvalidName), store.batch() as batch:
        batch.save_json("notes", "a", 1)
        batch.save_json("notes", "..", 1)
    with pytest.raises(InvalidName), store.batch() as batch:
        batch.save_json("sessions", "s", {})
    with pytest.raises(InvalidValue), store.batch() as batch:
        batch.save_json("notes", "a", float("nan"))
    assert store.list_categories() == []


def test_no_temporary_files_are_left_after_a_batch_that_failed(files_store: StateStore, directory: Path) -> None:
    with pytest.raises(DocumentConflict), files_store.batch() as batch:
        batch.save_json("notes", "a", 1)
        batch.save_json("notes", "b", 1, if_version="none")
    assert list((directory / ".statestore" / "tmp").iterdir()) == []
    assert not (directory / ".statestore" / "journal").exists()
