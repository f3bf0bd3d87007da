"""Hostile input, shortly: a few rounds of each proof, and what they found once, which stays mended."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from enum import StrEnum
from pathlib import Path

import pytest

from soak.hostile.links import SWAPPED_FOR_LINKS
from soak.hostile.memory import LARGE_FILES
from soak.hostile.proofs import FUZZED
from soak.hostile.rows import FUZZ_ROWS
from soak.proof import Proof, shortly
from statestore import (
    CorruptData,
    CorruptSession,
    InvalidName,
    InvalidValue,
    Session,
    StateStore,
    StoreUnavailable,
    UserMessage,
)
from statestore.engine import DeleteSession, PutDocument
from statestore.engines.files import FilesEngine
from statestore.exchange import FORMATS, export_sessions
from statestore.host import step


@pytest.mark.parametrize("proof", FUZZED, ids=lambda proof: proof.name)
def test_hostile_input_is_a_value_or_an_error_of_ours(proof: Proof) -> None:
    assert shortly(proof, proof.engines[-1], rounds=2 if proof is FUZZ_ROWS else 1)["inputs"] > 0


@pytest.mark.parametrize("engine", SWAPPED_FOR_LINKS.engines)
def test_nothing_that_is_swapped_for_a_link_leads_out_of_the_store(engine: str) -> None:
    shortly(SWAPPED_FOR_LINKS, engine, rounds=2)


def test_large_files_take_a_small_multiple_of_their_size() -> None:
    shortly(LARGE_FILES, "files")


# -- found once


def _thrown_away(store: StateStore, root: Path, suffix: str) -> Path:
    session = Session("alice", "s")
    session.add_user_message("hello")
    store.save_session(session)
    store.delete_session("s", trash_hours=5)
    (found,) = (root / ".statestore" / "trash").glob(f"*{suffix}")
    return found


@pytest.mark.parametrize("planted", ["../../outside", "/outside", "other"])
def test_what_lies_in_the_trash_cannot_be_restored_as_something_else(tmp_path: Path, planted: str) -> None:
    with StateStore.open(tmp_path / "state") as store:
        path = _thrown_away(store, tmp_path / "state", ".bin")
        path.write_bytes(path.read_bytes().replace(b'["s"', f'["{planted}"'.encode()))
        before = sorted(tmp_path.iterdir())
        with pytest.raises(CorruptSession, match="holds another session"):
            store.restore_session("s")
        assert sorted(tmp_path.iterdir()) == before
        assert store.list_sessions() == []


def test_a_trashed_session_that_is_another_users_is_not_restored(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        path = _thrown_away(store, tmp_path / "state", ".bin")
        path.write_bytes(path.read_bytes().replace(b'"alice"', b'"mallory"'))
        with pytest.raises(CorruptSession, match="holds another session"):
            store.for_user("alice").restore_session("s")


@pytest.mark.parametrize("damage", [b"\xff", b"\xed\xa0\x80"])
def test_a_note_in_the_trash_that_is_not_utf_8_is_left_out(tmp_path: Path, damage: bytes) -> None:
    with StateStore.open(tmp_path / "state") as store:
        path = _thrown_away(store, tmp_path / "state", ".json")
        path.write_bytes(path.read_bytes().replace(b"alice", damage))
        assert store.list_trash() == []
        assert store.prune_sessions() == 0


def test_a_note_in_the_trash_that_tells_of_another_item_is_left_out(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        path = _thrown_away(store, tmp_path / "state", ".json")
        path.rename(path.with_name(f"0-{path.name}"))
        assert store.list_trash() == []


def test_an_engine_writes_no_file_whose_name_leads_out_of_its_directory(tmp_path: Path) -> None:
    engine = FilesEngine(str(tmp_path / "state"))
    step(engine.open())
    for change in (PutDocument("notes", "../../x", "md", b"x"), DeleteSession("../../x")):
        with pytest.raises(InvalidName):
            step(engine.commit([change]))
    step(engine.close())
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("body", ["5", "[]", '{"content": 1}', "{"])
def test_a_row_that_is_no_record_is_a_corrupt_session_however_it_is_read(tmp_path: Path, body: str) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path) as store:
        store.save_session(Session("alice", "s"))
        store.append("s", UserMessage("one"))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE records SET body = ?", (body,))
        with pytest.raises(CorruptSession):
            store.load_json("sessions", "s")
        for format in FORMATS:
            with pytest.raises(CorruptSession):
                list(export_sessions(store, ["s"], format=format))


@pytest.mark.parametrize("column", ["user_id", "updated", "next_seq", "title", "size"])
def test_a_value_of_the_wrong_type_is_left_out_of_listings_and_cannot_be_loaded(tmp_path: Path, column: str) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path) as store:
        for name in "ab":
            store.save_session(Session("alice", name))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'sessions'")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"UPDATE sessions SET {column} = x'00ff' WHERE id = 'a'")
    with StateStore.open(path) as store:
        if column != "next_seq":
            assert [summary.id for summary in store.list_sessions()] == ["b"]
        if column not in ("title", "size"):
            with pytest.raises(CorruptData):
                store.load_session("a")
        assert store.load_session("b") is not None


@pytest.mark.parametrize("table", ["identity", "indexing"])
def test_a_row_of_our_own_that_is_gone_is_an_error_of_ours(tmp_path: Path, table: str) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path) as store:
        store.save_session(Session("alice", "s"))
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(f"DELETE FROM {table}")
        with pytest.raises(CorruptData):
            store.change_cursor() if table == "identity" else store.search_sessions("ferry")
        assert store.session_exists("s")


@pytest.mark.parametrize("place", [".statestore", ".statestore/index.db", ".statestore/changes.db"])
def test_our_own_databases_are_not_looked_for_behind_a_link(tmp_path: Path, place: str) -> None:
    root, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    for name in ("index.db", "changes.db"):
        with closing(sqlite3.connect(outside / name, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE files (kept)")
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    with StateStore.open(root) as store:
        store.save_session(Session("alice", "s"))
        path = root / place
        if path.exists():
            path.rename(tmp_path / "moved")
        path.symlink_to(outside if place == ".statestore" else outside / path.name)
        store.append("s", UserMessage("a ferry"))
        assert [summary.id for summary in store.list_sessions()] == ["s"]
        assert [hit.session_id for hit in store.search_sessions("ferry")] == ["s"]
        assert store.delete_session("s")
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


@pytest.mark.parametrize("category", ["notes", "notes/deep"])
def test_a_category_that_is_a_link_is_not_entered(tmp_path: Path, category: str) -> None:
    root, outside = tmp_path / "state", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    with StateStore.open(root) as store:
        (root / category).parent.mkdir(parents=True, exist_ok=True)
        (root / category).symlink_to(outside)
        with pytest.raises(StoreUnavailable, match="links are not followed"):
            store.load_markdown(category, "secret")
        with pytest.raises(StoreUnavailable, match="links are not followed"):
            store.save_markdown(category, "new", "x")
    assert [path.name for path in outside.iterdir()] == ["secret.md"]


@pytest.mark.parametrize("name", ["index.db", "changes.db"])
def test_our_own_databases_are_not_written_into_a_file_that_has_another_name(tmp_path: Path, name: str) -> None:
    root, outside = tmp_path / "state", tmp_path / "outside.db"
    with closing(sqlite3.connect(outside, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE files (kept)")
    before = outside.read_bytes()
    StateStore.open(root).close()
    os.link(outside, root / ".statestore" / name)
    with StateStore.open(root) as store:
        store.save_session(Session("alice", "s"))
        assert [summary.id for summary in store.list_sessions()] == ["s"]
        assert store.search_sessions("ferry") == []
    assert outside.read_bytes() == before


def test_two_locks_that_are_one_file_are_an_error_and_not_a_wait_without_end(tmp_path: Path) -> None:
    locks = tmp_path / "state" / ".statestore" / "locks"
    with StateStore.open(tmp_path / "state") as store:
        outside = tmp_path / "outside"
        outside.write_bytes(b"")
        for name in (*(f"{number:02x}" for number in range(64)), "batches"):
            (locks / name).unlink(missing_ok=True)
            os.link(outside, locks / name)
        with pytest.raises(StoreUnavailable, match="one file with another lock"), store.batch() as batch:
            batch.save_json("notes", "one", 1)
            batch.save_json("notes", "two", 2)


def test_the_turns_of_writers_are_not_noted_in_a_file_that_has_another_name(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"kept as it is, all of it")
    os.link(outside, tmp_path / "state.db-turn")
    with StateStore.open(tmp_path / "state.db") as store:
        store.save_session(Session("alice", "s"))
        assert store.session_exists("s")
    assert outside.read_bytes() == b"kept as it is, all of it"


class Word(StrEnum):
    """A text that is not quite one."""

    GREETING = "Grüße"


class Liar(str):
    """A text that denies what it holds."""

    __slots__ = ()

    def __contains__(self, part: object) -> bool:
        return False

    def __len__(self) -> int:
        return 1


def test_a_text_of_another_class_is_stored_as_the_text_it_is() -> None:
    with StateStore.open("memory:") as store:
        session = Session(Word.GREETING, "s")
        session.add_user_message(Word.GREETING)
        store.save_session(session)
        loaded = store.load_session("s")
        assert loaded is not None
        assert (loaded.user_id, loaded.user_messages[0].content) == ("Grüße", "Grüße")


@pytest.mark.parametrize("name", ["../x", "x" * 201, "a/b"])
def test_a_name_is_judged_by_what_it_holds(name: str) -> None:
    with StateStore.open("memory:") as store, pytest.raises(InvalidName):
        store.save_markdown("notes", Liar(name), "x")


@pytest.mark.parametrize("url", ["postgresql://host/\ud800", "valkey://host/\udcff", "redis://u:\ud800@host"])
def test_a_url_that_is_not_unicode_is_refused(url: str) -> None:
    with pytest.raises(InvalidValue, match="lone surrogate"):
        StateStore.open(url)


def test_a_value_is_nested_to_100_levels_and_no_deeper() -> None:
    with StateStore.open("memory:") as store:
        value: list[object] = []
        for _ in range(99):
            value = [value]
        store.save_json("notes", "deep", value)
        with pytest.raises(InvalidValue, match="deeper than 100 levels"):
            store.save_json("notes", "deeper", [value])
