"""Imports: all or nothing for each session, never twice, and an error that says where a file is wrong."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from exchanging import GOLDEN, VARIETY, exported, imported, sessions_of, store_with

from damages import DAMAGES, damage_session, url_of
from statestore import InvalidValue, StateStore, StoreUnavailable
from statestore.conformance.changes import created, user
from statestore.exchange import Imported, NotAnExport, check_beginning, import_path, import_sessions, parsing

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


@pytest.mark.parametrize("metadata", [rb'{"gr\u00f6\u00dfe":1,"z":"\u00f6"}', b'{"a":1,"z":2,"a":3}'])
def test_an_export_that_another_program_rewrote_is_imported_once(metadata: bytes) -> None:
    text = HEAD.replace(b'"next_seq":9', b'"next_seq":9,"metadata":' + metadata) + SAID + END
    target = store_with()
    assert [imported(target, text)[0].fate for _ in range(2)] == ["imported", "skipped"]


def test_another_session_of_that_id_is_left_alone_and_named_and_the_others_are_imported() -> None:
    source, target = store_with(*VARIETY), store_with(created("gap", user("mine", 1)))
    before = sessions_of(target)["gap"]
    fates = {item.where: item for item in imported(target, exported(source))}
    assert fates["session gap"].fate == "refused"
    assert "another one with this id is there" in fates["session gap"].reason
    assert [item.fate for item in fates.values()].count("imported") == len(VARIETY) - 1
    assert sessions_of(target)["gap"] == before


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_a_session_that_is_damaged_is_left_alone_and_named_and_the_others_are_imported(
    tmp_path: Path, kind: str, damage: str
) -> None:
    sessions = [created(name, user("hello"), metadata={"k": b"1"}) for name in ("a", "bad", "c")]
    text = exported(store_with(*sessions))
    with StateStore.open(url := url_of(kind, tmp_path)) as target:
        imported(target, text)
        damage_session(kind, url, damage)
        target.delete_session("c")
        before, bad, after = imported(target, text)
        assert (before.fate, bad.fate, after.fate) == ("skipped", "refused", "imported")
        assert bad.reason.startswith("one with this id is there, and cannot be read: ")


def test_a_document_that_is_damaged_is_left_alone_and_named_and_the_others_are_imported(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "source") as source, StateStore.open(tmp_path / "target") as target:
        for name in ("a", "bad", "c"):
            source.save_markdown("notes", name, name)
        (tmp_path / "target" / "notes" / "bad.md").mkdir(parents=True)
        before, bad, after = import_path(target, tmp_path / "source")
        assert (before.fate, bad.fate, after.fate) == ("imported", "refused", "imported")
        assert bad.where == "document notes/bad.md"
        assert bad.reason.startswith("one is there, and cannot be read: ")


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
        (b"\xef\xbb\xbf" + HEAD + SAID + END, 1, "it begins with a byte order mark: save it as UTF-8 without one"),
        ((HEAD + SAID + END).decode().encode("utf-16"), 1, "it is UTF-16: save it as UTF-8"),
        (gzip.compress(HEAD, mtime=0), 1, "it is compressed: unpack it first"),
        (b"SQLite format 3\0\x10", 1, "it is a database: statestore copy"),
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


def test_a_byte_order_mark_between_joined_files_is_named_with_its_line() -> None:
    with pytest.raises(NotAnExport, match="line 4: it begins with a byte order mark"):
        imported(store_with(), HEAD + SAID + END + b"\xef\xbb\xbf" + HEAD + SAID + END)


def test_a_json_export_that_was_reformatted_is_taken_and_its_errors_name_the_line() -> None:
    source, target = store_with(*VARIETY), store_with()
    pretty = json.dumps(json.loads(exported(source, "kept", format="json")), indent=2)
    bad = pretty.replace('"kind": "user"', '"kind": "tool"')
    where = bad[: bad.index('"kind": "tool"')].rindex("{")
    with pytest.raises(NotAnExport, match=f"line {bad.count(chr(10), 0, where) + 1}: this is no record"):
        imported(target, bad.encode())
    assert [item.fate for item in imported(target, pretty.encode())] == ["imported"]


@pytest.mark.parametrize(
    ("good", "bad", "line"),
    [
        ('"next_seq": 40', '"next_seq": 2', '"kind": "user"'),
        ('"id": "kept"', '"id": "../x"', '"session": {'),
        ('"session": {', '"new": {', '"new": {'),
    ],
)
def test_every_error_in_a_json_export_names_the_line_of_its_record_or_its_session(
    good: str, bad: str, line: str
) -> None:
    text = json.dumps(json.loads(exported(store_with(*VARIETY), "kept", format="json")), indent=2).replace(good, bad)
    where = text[: text.index(line)].rindex("{")
    with pytest.raises(NotAnExport) as caught:
        imported(store_with(), text.encode())
    assert caught.value.line == text.count("\n", 0, where) + 1


def test_lines_are_not_counted_while_an_import_goes_well(monkeypatch: pytest.MonkeyPatch) -> None:
    text = exported(store_with(*VARIETY), format="json")
    monkeypatch.setattr(parsing, "_line_at", lambda text, place: pytest.fail("for each session, that is all of it"))
    assert {item.fate for item in imported(store_with(), text)} == {"imported"}


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


@pytest.mark.parametrize("stream", [io.StringIO("{}"), b"{}", "{}", None, 5, [b"{}"]])
def test_what_is_no_stream_of_bytes_is_refused_at_once(stream: Any) -> None:
    with store_with() as store, pytest.raises(InvalidValue, match=r"a stream of bytes is needed here, like open\("):
        import_sessions(store, stream)


def test_a_stream_that_cannot_be_read_is_refused_at_once(tmp_path: Path) -> None:
    closed = io.BytesIO(HEAD)
    closed.close()
    with store_with() as store, (tmp_path / "out").open("wb") as written:
        for stream in (closed, written):
            with pytest.raises(InvalidValue, match="the stream cannot be read: "):
                import_sessions(store, stream)


def test_the_beginning_of_a_file_tells_if_it_is_no_export() -> None:
    source = store_with(*VARIETY)
    for format in ("jsonl", "json"):
        text = exported(source, format=format)
        for beginning in (text, b"\n \n" + text, *(text[:length] for length in range(1, 400))):
            check_beginning(beginning, "file")
    pretty = json.dumps(json.loads(exported(source, format="json")), indent=2).encode()
    check_beginning(pretty[:40], "file")
    check_beginning(b"\n", "file")
    for junk in (b"", b"junk", b"\n\njunk\n", b"<html>\n", b'{"messages":[]}\n', b"[", gzip.compress(HEAD, mtime=0)):
        with pytest.raises(NotAnExport, match="file, line "):
            check_beginning(junk, "file")


def test_what_was_imported_tells_how_many_records_there_are() -> None:
    source, target = store_with(*VARIETY), store_with()
    assert imported(target, exported(source, "odd")) == [Imported("session odd", "imported", records=9)]
