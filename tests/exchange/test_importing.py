"""Imports: all or nothing for each session, never twice, and an error that says where a file is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from exchanging import GOLDEN, VARIETY, exported, imported, sessions_of, store_with

from statestore import InvalidValue, StateStore, StoreUnavailable
from statestore.conformance.changes import created, user
from statestore.exchange import Imported, NotAnExport, import_path

HEAD = (
    b'{"statestore":1,"session":{"id":"s","user_id":"u","created_at":"2026-01-01T00:00:00Z",'
    b'"updated_at":"2026-01-01T00:00:00Z","next_seq":9}}\n'
)
SAID = b'{"seq":1,"kind":"user","body":{"content":"a","timestamp":"2026-01-01T00:00:00Z"}}\n'
END = b'{"end":"s","records":1}\n'


def test_an_import_that_is_repeated_changes_nothing() -> None:
    source, target = store_with(*VARIETY), store_with()
    imported(target, exported(source))
    before = sessions_of(target)
    assert {item.fate for item in imported(target, exported(source))} == {"skipped"}
    assert {item.fate for item in imported(target, exported(source, format="json"))} == {"skipped"}
    assert sessions_of(target) == before


def test_another_session_of_that_id_is_left_alone_and_named_and_the_others_are_imported() -> None:
    source, target = store_with(*VARIETY), store_with(created("gap", user("mine", 1)))
    before = sessions_of(target)["gap"]
    fates = {item.where: item for item in imported(target, exported(source))}
    assert fates["session gap"].fate == "refused"
    assert "another one with this id is there" in fates["session gap"].reason
    assert [item.fate for item in fates.values()].count("imported") == len(VARIETY) - 1
    assert sessions_of(target)["gap"] == before


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (b"", 1, "empty"),
        (b"# A title\n\nSome text\n", 1, "not JSON"),
        (b'{"messages":[]}\n', 1, "does not look like one that was exported"),
        (b"[1,2]\n", 1, "does not look like one"),
        (b'{\n  "id": "x"\n}\n', 1, "no export of statestore"),
        (b'{"statestore":1,\n"sessions":[\n{"session":{}}]}', 3, "no session"),
        (b'{"statestore":1,\n"sessions":[\n', 2, "truncated"),
        (b'{"statestore":7,"session":{}}\n', 1, "newer release"),
        (b'{"statestore":"x","session":{}}\n', 1, "form"),
        (HEAD.replace(b'"s"', b'"../x"') + END, 1, "'..'"),
        (HEAD.replace(b"2026-01-01T00:00:00Z", b"yesterday"), 1, "timestamp"),
        (HEAD.replace(b'"next_seq":9', b'"next_seq":9,"new":1'), 1, "unknown field"),
        (HEAD.replace(b'"next_seq":9', b'"next_seq":9,"metadata":[]'), 1, "no JSON object"),
        (HEAD.replace(b'"next_seq":9', b'"next_seq":9,"metadata":{"statestore":{}}'), 1, "reserved"),
        (HEAD.replace(b'"next_seq":9', b'"next_seq":1') + SAID + END, 3, "is taken"),
        (HEAD + SAID, 2, "cut off"),
        (HEAD + SAID[:40], 2, "not JSON"),
        (HEAD + SAID + SAID + END, 3, "does not rise"),
        (HEAD + END, 2, "lines are missing"),
        (HEAD + SAID + END.replace(b'"s"', b'"t"'), 3, "session t"),
        (HEAD + SAID.replace(b"user", b"tool") + END, 2, "kind"),
        (HEAD + SAID.replace(b'"content":"a",', b"") + END, 2, "content"),
        (HEAD + SAID.replace(b'"a"', b'"\xff"') + END, 2, "UTF-8"),
        (HEAD + b"\n" + SAID.replace(b'"kind"', b'"key":"","kind"') + END, 3, "empty"),
        (HEAD + SAID.replace(b'"a"', b"[" * 5000 + b"]" * 5000) + END, 2, ""),
    ],
)
def test_what_is_no_export_is_refused_with_its_line_and_the_reason(text: bytes, line: int, reason: str) -> None:
    with store_with() as store:
        with pytest.raises(NotAnExport) as caught:
            imported(store, text)
        assert str(caught.value).startswith(f"file, line {line}: ")
        assert reason in str(caught.value)
        assert sessions_of(store) == {}


def test_a_json_export_that_was_reformatted_is_taken_and_its_errors_name_the_line() -> None:
    source, target = store_with(*VARIETY), store_with()
    pretty = json.dumps(json.loads(exported(source, "kept", format="json")), indent=2)
    bad = pretty.replace('"kind": "user"', '"kind": "tool"')
    where = bad[: bad.index('"kind": "tool"')].rindex("{")
    with pytest.raises(NotAnExport, match=f"line {bad.count(chr(10), 0, where) + 1}: this is no record"):
        imported(target, bad.encode())
    assert [item.fate for item in imported(target, pretty.encode())] == ["imported"]


def test_sessions_before_a_bad_line_are_stored_whole_and_the_cut_off_one_not_at_all() -> None:
    source, target = store_with(*VARIETY), store_with()
    text = exported(source)
    cut = text[: text.index(b'{"end":"odd"')]
    with pytest.raises(NotAnExport, match="session odd does not end"):
        imported(target, cut)
    whole = sessions_of(source)
    assert sessions_of(target) == {session_id: whole[session_id] for session_id in ("a", "gap", "kept", "none")}


def test_a_directory_of_the_rust_program_is_imported_with_its_documents_and_only_once(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "rust")
    (tmp_path / "rust" / "sessions" / "bad.json").write_text("{")
    before = {path: path.read_bytes() for path in (tmp_path / "rust").rglob("*") if path.is_file()}
    with StateStore.open(f"sqlite:{tmp_path / 's.db'}") as store:
        store.save_markdown("notes", "today", "mine")
        items = list(import_path(store, tmp_path / "rust"))
        refused = {item.where: item.reason for item in items if item.fate == "refused"}
        assert sorted(refused) == ["document notes/today.md", "session bad"]
        assert store.load_markdown("notes", "today") == "mine"
        assert store.count_sessions() == 6
        assert store.load_markdown("projects/alpha", "plan") is not None
        assert "imported" not in {item.fate for item in import_path(store, tmp_path / "rust")}
    assert {path: path.read_bytes() for path in (tmp_path / "rust").rglob("*") if path.is_file()} == before


def test_what_was_thrown_away_in_a_directory_stays_there(tmp_path: Path) -> None:
    with StateStore.open(f"file:{tmp_path / 'here'}") as source, store_with() as target:
        source.get_or_create_session("alice", "gone")
        source.get_or_create_session("alice", "kept")
        source.delete_session("gone", trash_hours=24)
        items = list(import_path(target, tmp_path / "here"))
        assert [(item.where, item.fate) for item in items] == [("session kept", "imported")]
        assert target.list_trash() == []


def test_a_store_is_not_imported_into_itself_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with StateStore.open(f"file:{tmp_path / 'here'}") as store:
        store.get_or_create_session("alice", "a")
        with pytest.raises(InvalidValue, match="into itself"):
            list(import_path(store, tmp_path / "here"))
        with pytest.raises(StoreUnavailable, match="nowhere cannot be read"):
            list(import_path(store, tmp_path / "nowhere"))


def test_what_was_imported_tells_how_many_records_there_are() -> None:
    source, target = store_with(*VARIETY), store_with()
    assert imported(target, exported(source, "odd")) == [Imported("session odd", "imported", records=9)]
