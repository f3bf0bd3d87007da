"""Searching a directory of files: every change is found at once, whoever made it, whatever became of the index."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from faces import Face
from statestore import AgentResponse, InvalidCursor, Session, StateStore, StoreUnavailable, UserMessage
from statestore.engines import stepping
from statestore.engines.files import engine, image, log_file, wording
from statestore.engines.files.directory import Directory
from statestore.engines.fulltext import add_words
from statestore.seedform.text import SessionText

MOMENT = "2026-01-01T00:00:00Z"


def places(store: StateStore, query: str, **options: Any) -> set[tuple[str, int | None]]:
    """Where a query is found: sessions and record numbers."""
    hits = store.search_sessions(query, **options)
    found = {(hit.session_id, hit.seq) for hit in hits}
    assert len(found) == len(hits)
    return found


def write_session(directory: Path, name: str, *contents: str, **changes: Any) -> Path:
    """Write a session file in place, as an editor would."""
    messages = [{"content": content, "timestamp": MOMENT} for content in contents]
    session: dict[str, Any] = {"id": name, "user_id": "alice", "user_messages": messages, "agent_responses": []}
    session |= {"created_at": MOMENT, "updated_at": MOMENT, "metadata": {"title": "untitled"}} | changes
    path = directory / "sessions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(session, indent=2, ensure_ascii=False), encoding="utf-8")
    return path


def fill(store: StateStore, name: str, *contents: str, user_id: str = "alice") -> Session:
    session = Session(user_id, name)
    session.set_metadata("title", "untitled")
    for content in contents:
        session.add_user_message(content)
    store.save_session(session)
    return session


class Indexed:
    """How many texts were indexed since the last look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._texts: list[str] = []

        def counted(connection: Any, texts: Any) -> None:
            texts = list(texts)
            self._texts += [text for _, text in texts]
            add_words(connection, texts)

        monkeypatch.setattr(wording, "add_words", counted)

    def take(self) -> list[str]:
        texts, self._texts = self._texts, []
        return texts


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> Indexed:
    return Indexed(monkeypatch)


def remove_log(directory: Path) -> Path:
    for path in (directory / ".statestore").glob("changes.db*"):
        path.unlink()
    return directory / ".statestore" / "changes.db"


# -- what is stored is found


def test_what_was_saved_and_appended_is_found_at_once(files_store: StateStore) -> None:
    fill(files_store, "s", "the quick fox")
    assert places(files_store, "quick") == {("s", 1)}
    files_store.append("s", UserMessage("a lazy dog"), AgentResponse("foxes are quick"))
    assert places(files_store, "quick") == {("s", 1), ("s", 3)}
    assert places(files_store, "lazy DOG") == {("s", 2)}
    assert places(files_store, "lazy fox") == set()


def test_a_hit_tells_where_and_shows_the_words(files_store: StateStore) -> None:
    session = fill(files_store, "s", "first", "the quick brown fox")
    session.add_event("tool_call", {"query": ["brown bears"]})
    files_store.save_session(session)
    hits = {hit.kind: hit for hit in files_store.search_sessions("brown")}
    assert set(hits) == {"user", "tool_call"}
    hit = hits["user"]
    assert (hit.session_id, hit.seq, hit.user_id, hit.title) == ("s", 2, "alice", "untitled")
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["brown"]
    assert hits["tool_call"].snippet == "brown bears"


def test_text_without_spaces_is_found_by_any_part(files_store: StateStore) -> None:
    fill(files_store, "s", "明日は東京都へ行きます")
    for part in ("東京", "京都", "都へ", "東", "明日は東京都へ行きます"):
        assert places(files_store, part) == {("s", 1)}, part
    assert places(files_store, "京東") == set()


def test_titles_are_found_and_follow_their_changes(files_store: StateStore) -> None:
    session = fill(files_store, "s", "hello")
    session.set_metadata("title", "holiday plans")
    files_store.save_session(session)
    (hit,) = files_store.search_sessions("holiday")
    assert (hit.seq, hit.kind, hit.snippet, hit.title) == (None, "title", "holiday plans", "holiday plans")
    session.set_metadata("title", "work")
    files_store.save_session(session)
    assert places(files_store, "holiday") == set()
    assert places(files_store, "work") == {("s", None)}


def test_a_title_that_is_only_the_first_message_is_no_second_hit(files_store: StateStore) -> None:
    files_store.get_or_create_session("alice", "s")
    files_store.append("s", UserMessage("hello there"))
    (hit,) = files_store.search_sessions("hello")
    assert (hit.seq, hit.title) == (1, "hello there")


def test_what_was_rewound_is_not_found_and_what_comes_after_it_is(files_store: StateStore) -> None:
    fill(files_store, "s", "one apple", "two apples", "three apples")
    assert places(files_store, "apple*") == {("s", 1), ("s", 2), ("s", 3)}
    files_store.rewind_session("s", to=1)
    assert places(files_store, "apple*") == {("s", 1)}
    files_store.append("s", UserMessage("four apples"))
    assert places(files_store, "apple*") == {("s", 1), ("s", 4)}


def test_what_was_deleted_is_not_found_and_leaves_no_words(files_store: StateStore, directory: Path) -> None:
    fill(files_store, "s", "secret word")
    fill(files_store, "t", "public word")
    assert places(files_store, "word") == {("s", 1), ("t", 1)}
    files_store.delete_session("s")
    assert places(files_store, "word") == {("t", 1)}
    with closing(sqlite3.connect(directory / ".statestore" / "changes.db")) as connection, connection:
        assert [text for (text,) in connection.execute("SELECT text FROM words")] == ["untitled", "public word"]
    connection.close()


def test_a_session_made_anew_under_an_old_name_has_only_its_own_words(files_store: StateStore) -> None:
    fill(files_store, "s", "old word", "older word")
    assert len(places(files_store, "word")) == 2
    files_store.delete_session("s")
    fill(files_store, "s", "new word", user_id="bob")
    assert places(files_store, "word") == {("s", 1)}
    assert places(files_store, "word", user_id="alice") == set()
    assert places(files_store, "old*") == set()


# -- whoever wrote it


def test_another_store_finds_it_too(files_store: StateStore, face: Face, directory: Path) -> None:
    other = face.open(directory)
    for turn in range(1, 5):
        fill(files_store, f"s{turn}", "common")
        other.append(f"s{turn}", AgentResponse("answer"))
        assert places(other, "common") == places(files_store, "common") == {(f"s{n}", 1) for n in range(1, turn + 1)}
        assert places(files_store, "answer") == {(f"s{n}", 2) for n in range(1, turn + 1)}


def test_another_process_finds_it_and_is_found(files_store: StateStore, directory: Path) -> None:
    fill(files_store, "mine", "common word")
    code = (
        "import sys; from statestore import StateStore, UserMessage\n"
        "with StateStore.open(sys.argv[1]) as store:\n"
        "    store.get_or_create_session('bob', 'theirs'); store.append('theirs', UserMessage('common too'))\n"
        "    print(sorted((hit.session_id, hit.seq) for hit in store.search_sessions('common') if hit.seq))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(directory)], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[('mine', 1), ('theirs', 1)]", "")
    assert places(files_store, "common") >= {("mine", 1), ("theirs", 1)}


def test_a_file_rewritten_in_place_is_found_by_its_new_words_alone(files_store: StateStore, directory: Path) -> None:
    write_session(directory, "s", "alpha one", "beta two", "gamma three")
    assert places(files_store, "beta") == {("s", 2)}
    write_session(directory, "s", "alpha one", "delta two", "gamma three", "epsilon four")
    assert places(files_store, "beta") == set()
    assert places(files_store, "delta") == {("s", 2)}
    assert places(files_store, "gamma") == {("s", 3)}
    assert places(files_store, "epsilon") == {("s", 4)}
    write_session(directory, "s", "gamma three")
    assert places(files_store, "gamma OR alpha") == places(files_store, "alpha") == set()
    assert places(files_store, "gamma") == {("s", 1)}
    (directory / "sessions" / "s.json").unlink()
    assert places(files_store, "gamma") == set()


@pytest.mark.parametrize(("unit", "later"), [(1, 15_000_000), (10**9, 900_000_000)], ids=["nanoseconds", "seconds"])
def test_a_rewrite_within_a_tick_of_the_clock_is_not_missed(
    unit: int, later: int, files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_session(directory, "s", "first")
    moment = path.stat().st_mtime_ns // unit * unit
    os.utime(path, ns=(moment, moment))
    monkeypatch.setattr(time, "time_ns", lambda: moment + later)
    assert places(files_store, "first") == {("s", 1)}
    write_session(directory, "s", "later")
    os.utime(path, ns=(moment, moment))
    assert places(files_store, "later") == {("s", 1)}


def test_of_a_session_that_grew_only_what_is_new_is_indexed(files_store: StateStore, indexed: Indexed) -> None:
    fill(files_store, "long", *(f"message {number}" for number in range(50)))
    fill(files_store, "other", "elsewhere")
    files_store.search_sessions("message")
    assert len(indexed.take()) == 51
    files_store.append("long", UserMessage("one more"), AgentResponse("an answer"))
    assert places(files_store, "answer") == {("long", 52)}
    assert indexed.take() == ["one more", "an answer"]
    files_store.search_sessions("message")
    files_store.list_sessions()
    assert indexed.take() == []


def test_of_a_file_rewritten_at_its_end_only_the_end_is_indexed(
    files_store: StateStore, directory: Path, indexed: Indexed
) -> None:
    write_session(directory, "s", "one", "two", "three")
    files_store.search_sessions("one")
    indexed.take()
    write_session(directory, "s", "one", "two", "drei", "vier")
    assert places(files_store, "drei") == {("s", 3)}
    assert indexed.take() == ["drei", "vier"]


def test_what_was_indexed_serves_the_next_process(files_store: StateStore, face: Face, directory: Path) -> None:
    fill(files_store, "s", "one", "two")
    files_store.search_sessions("one")
    with pytest.MonkeyPatch.context() as patch:
        indexed = Indexed(patch)
        assert places(face.open(directory), "two") == {("s", 2)}
        assert indexed.take() == []


def test_many_small_steps_index_all_and_remove_all(
    files_store: StateStore, monkeypatch: pytest.MonkeyPatch, directory: Path
) -> None:
    monkeypatch.setattr(stepping, "RECORDS_A_STEP", 3)
    monkeypatch.setattr(wording, "SESSIONS_A_STEP", 2)
    for name in "abcd":
        fill(files_store, name, *(f"word {name}{n}" for n in range(1, 11)))
    expected = {(name, seq) for name in "abcd" for seq in range(1, 11)}
    assert places(files_store, "word", limit=100) == expected
    files_store.rewind_session("a", to=2)
    files_store.append("a", UserMessage("word again"))
    files_store.delete_session("b")
    write_session(directory, "c", "word new")
    expected = {("a", 1), ("a", 2), ("a", 11), ("c", 1)} | {("d", seq) for seq in range(1, 11)}
    assert places(files_store, "word", limit=100) == expected


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_step_takes_and_removes_records_up_to_a_number_of_bytes(
    is_deleted: bool, files_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepping, "BYTES_A_STEP", 4000)
    steps: list[int] = []

    @contextmanager
    def counted(connection: sqlite3.Connection) -> Iterator[None]:
        before = connection.execute("SELECT count(*) FROM words").fetchone()[0]
        with log_file.transaction(connection):
            yield
            steps.append(connection.execute("SELECT count(*) FROM words").fetchone()[0] - before)

    monkeypatch.setattr(wording, "transaction", counted)
    fill(files_store, "s", *(f"horse {number} " + "word " * 200 for number in range(40)))
    assert len(places(files_store, "horse", limit=100)) == 40
    assert (max(steps), sum(steps)) == (5, 41)  # the title, too
    steps.clear()
    if is_deleted:
        files_store.delete_session("s")
    else:
        files_store.rewind_session("s", to=0)
    assert places(files_store, "horse") == set()
    assert (min(steps), sum(steps)) == (-4, -41 if is_deleted else -40)


def test_hits_that_alternate_between_sessions_parse_each_of_them_once(
    files_store: StateStore, face: Face, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "KEPT_BYTES", 1000)
    for turn, name in enumerate("ab"):
        fill(files_store, name, *("horse " * (2 * number + turn) + "filler " * 100 for number in range(1, 9)))
    time.sleep(0.05)  # what was written within a tick of the clock is looked at again
    files_store.search_sessions("horse")
    parsed: list[str] = []
    parse = SessionText.__init__

    def counted(text: SessionText, *arguments: Any) -> None:
        parse(text, *arguments)
        parsed.append(text.id)

    other = face.open(directory)
    monkeypatch.setattr(SessionText, "__init__", counted)
    hits = other.search_sessions("horse", limit=100)
    assert [(hit.session_id, hit.seq) for hit in hits] == [(name, seq) for seq in range(8, 0, -1) for name in "ba"]
    assert sorted(parsed) == ["a", "b"]


def test_threads_that_search_and_write_at_once_find_everything_they_wrote(directory: Path) -> None:
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            with StateStore.open(directory) as store:
                store.get_or_create_session("alice", name)
                for number in range(1, 9):
                    store.append(name, UserMessage(f"{name} common n{number}"))
                    assert (name, number) in places(store, f"{name} n{number}", limit=1000)
        except BaseException as error:  # noqa: BLE001 - told by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    with StateStore.open(directory) as store:
        found = {place for place in places(store, "common", limit=1000) if place[1]}
        assert found == {(f"t{n}", seq) for n in range(4) for seq in range(1, 9)}


# -- whatever became of the index


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _scramble(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))


def _script(statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        connection = sqlite3.connect(path)
        connection.executescript(statements)
        connection.close()

    return run


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"garbage" * 1000),
    "zeros": lambda path: path.write_bytes(b"\0" * 8192),
    "cut": _cut,
    "scrambled": _scramble,
    "another format": _script("PRAGMA user_version = 99"),
    "no format": _script("PRAGMA user_version = 0"),
    "without a table": _script("DROP TABLE sessions"),
    "without words": _script("DROP TABLE words"),
    "entries of nonsense": _script("UPDATE sessions SET entry = 'nonsense'"),
    "a schema that is no text": _script(
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET name = CAST(x'b19f' AS TEXT), sql = 'CREATE nonsense' WHERE name = 'sessions'"
    ),
    "entries that are no text": _script("UPDATE sessions SET entry = CAST(x'5bff5d' AS TEXT)"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("is_fresh", [False, True])
def test_a_damaged_index_costs_a_rebuild_and_nothing_else(
    damage: str, is_fresh: bool, files_store: StateStore, face: Face, directory: Path
) -> None:
    for number in range(20):
        fill(files_store, f"s{number}", f"word {number}")
    expected = {(f"s{number}", 1) for number in range(20)}
    assert places(files_store, "word") == expected
    DAMAGES[damage](directory / ".statestore" / "changes.db")
    for path in (directory / ".statestore").glob("changes.db-*"):
        path.unlink()
    store = face.open(directory) if is_fresh else files_store
    assert places(store, "word") == expected
    files_store.append("s3", AgentResponse("word again"))
    assert places(store, "word") == places(files_store, "word") == expected | {("s3", 2)}


def test_two_who_search_first_at_once_wait_for_each_other(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses to furnish a file with a log while somebody else is about to write it, and does not wait."""
    fill(files_store, "s", "word")
    other = sqlite3.connect(remove_log(directory), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    furnish, refused = log_file._furnish, list[bool]()

    def furnish_beside_the_other(connection: sqlite3.Connection) -> None:
        refused.append(True)
        try:
            furnish(connection)
            refused.pop()
        finally:
            other.close()

    monkeypatch.setattr(log_file, "_furnish", furnish_beside_the_other)
    assert places(files_store, "word") == {("s", 1)}
    assert refused == [True]


def test_a_damaged_index_is_warned_of(
    files_store: StateStore, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(files_store, "s", "word")
    files_store.search_sessions("word")
    remove_log(directory).write_bytes(b"garbage" * 1000)
    with caplog.at_level(logging.WARNING, "statestore"):
        assert places(files_store, "word") == {("s", 1)}
    assert "changes.db cannot be used and will be rebuilt" in caplog.text


def test_a_deleted_listing_index_does_not_matter(files_store: StateStore, directory: Path) -> None:
    fill(files_store, "s", "word")
    files_store.search_sessions("word")
    for path in (directory / ".statestore").glob("index.db*"):
        path.unlink()
    assert places(files_store, "word") == {("s", 1)}


def test_where_nobody_ever_searched_an_erasure_indexes_no_words(files_store: StateStore, indexed: Indexed) -> None:
    fill(files_store, "hers", "word")
    fill(files_store, "his", "word", user_id="bob")
    assert files_store.erase_user("bob") == 1
    assert indexed.take() == []
    assert places(files_store, "word") == {("hers", 1)}
    assert indexed.take() == ["word"]


def test_where_somebody_searched_an_erasure_leaves_no_words(files_store: StateStore, directory: Path) -> None:
    fill(files_store, "hers", "word")
    fill(files_store, "his", "word", user_id="bob")
    assert places(files_store, "word") == {("hers", 1), ("his", 1)}
    assert files_store.erase_user("bob") == 1
    with closing(sqlite3.connect(directory / ".statestore" / "changes.db")) as log:
        assert log.execute("SELECT count(*) FROM words WHERE words MATCH 'word'").fetchone() == (1,)


def test_an_index_that_another_process_begins_at_the_same_time_is_not_begun_again(
    files_store: StateStore, directory: Path, indexed: Indexed, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, "s", "word")
    transaction = wording.transaction

    def after_another(connection: sqlite3.Connection) -> Any:
        monkeypatch.setattr(wording, "transaction", transaction)
        with StateStore.open(directory) as other:
            assert places(other, "word") == {("s", 1)}
        return transaction(connection)

    files_store.change_cursor()
    monkeypatch.setattr(wording, "transaction", after_another)
    assert places(files_store, "word") == {("s", 1)}
    assert indexed.take() == ["word"]


def test_words_cut_by_other_rules_are_made_anew(files_store: StateStore, directory: Path, indexed: Indexed) -> None:
    fill(files_store, "s", "word")
    files_store.search_sessions("word")
    _script("UPDATE log SET rules = -1")(directory / ".statestore" / "changes.db")
    indexed.take()
    assert places(files_store, "word") == {("s", 1)}
    assert indexed.take() == ["word"]


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_something_else_in_the_place_of_the_index_is_left_alone(
    kind: str, files_store: StateStore, directory: Path, tmp_path: Path
) -> None:
    fill(files_store, "s", "word")
    files_store.search_sessions("word")
    outside = tmp_path / "outside"
    outside.write_text("kept")
    path = remove_log(directory)
    path.mkdir() if kind == "directory" else path.symlink_to(outside)
    files_store.append("s", UserMessage("word two"))
    assert places(files_store, "word") == {("s", 1), ("s", 2)}
    assert outside.read_text() == "kept"
    path.rmdir() if kind == "directory" else path.unlink()
    assert places(files_store, "word") == {("s", 1), ("s", 2)}


def test_a_store_that_is_only_read_finds_everything_and_writes_nothing(
    files_store: StateStore, face: Face, directory: Path
) -> None:
    fill(files_store, "s", "word one")
    reading = face.open(directory, read_only=True)
    assert places(reading, "word") == {("s", 1)}
    files_store.append("s", UserMessage("word two"))
    fill(files_store, "t", "word three")
    assert places(reading, "word") == {("s", 1), ("s", 2), ("t", 1)}
    files_store.delete_session("s")
    assert places(reading, "word") == {("t", 1)}
    assert not list((directory / ".statestore").glob("changes.db*"))


# -- beside files that are none


def test_a_corrupt_file_is_left_out_with_a_warning(
    files_store: StateStore, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(files_store, "good", "word")
    fill(files_store, "soon-bad", "word")
    write_session(directory, "bad").write_text("{")
    assert places(files_store, "word") == {("good", 1), ("soon-bad", 1)}
    whole = (directory / "sessions" / "soon-bad.json").read_bytes()
    (directory / "sessions" / "soon-bad.json").write_bytes(whole[:-20])
    caplog.clear()
    with caplog.at_level(logging.WARNING, "statestore"):
        assert places(files_store, "word") == {("good", 1)}
    assert "'bad' is left out of the search" in caplog.text
    assert "'soon-bad' is left out of the search" in caplog.text
    (directory / "sessions" / "soon-bad.json").write_bytes(whole)
    assert places(files_store, "word") == {("good", 1), ("soon-bad", 1)}


def test_a_file_that_could_not_be_read_for_a_moment_is_found_again(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, "s", "word")
    fill(files_store, "t", "word")
    original = Directory.read

    def refusing(*arguments: Any, **options: Any) -> Any:
        if "s.json" in arguments:
            raise StoreUnavailable("too many open files")
        return original(*arguments, **options)

    monkeypatch.setattr(Directory, "read", refusing)
    assert places(files_store, "word") == {("t", 1)}
    monkeypatch.undo()
    assert places(files_store, "word") == {("s", 1), ("t", 1)}


# -- filters and pages


def test_filters_by_user_and_project(files_store: StateStore) -> None:
    for name, user_id, project_id in (("a", "alice", "p"), ("b", "bob", "p"), ("c", "alice", None)):
        session = Session(user_id, name)
        session.set_metadata("title", "untitled")
        session.project_id = project_id
        session.add_user_message("word")
        files_store.save_session(session)
    assert places(files_store, "word", user_id="alice") == {("a", 1), ("c", 1)}
    assert places(files_store, "word", project_id="p") == {("a", 1), ("b", 1)}
    assert places(files_store, "word", user_id="bob", project_id="p") == {("b", 1)}
    assert places(files_store, "word", project_id="q") == set()
    assert places(files_store.for_user("bob"), "word") == {("b", 1)}
    session = files_store.load_session("c")
    assert session is not None
    session.project_id = "p"
    files_store.save_session(session)
    assert places(files_store, "word", project_id="p") == {("a", 1), ("b", 1), ("c", 1)}


def test_a_session_that_became_another_users_while_it_was_searched_is_not_shown(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_session(directory, "s", "word of alice")

    def overtaken(*arguments: Any) -> None:
        wording.index_words(*arguments)
        write_session(directory, "s", "word of bob", user_id="bob")

    monkeypatch.setattr(engine, "index_words", overtaken)
    assert places(files_store, "word", user_id="alice") == set()
    monkeypatch.undo()
    assert places(files_store, "word", user_id="alice") == set()
    assert places(files_store, "word", user_id="bob") == {("s", 1)}


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_pages_hold_every_hit_once(files_store: StateStore, size: int) -> None:
    for name in "abc":
        fill(files_store, name, *("word " * (number + 1) + "filler " * number for number in range(5)))
    everything = [hit.cursor for hit in files_store.search_sessions("word")]
    assert len(everything) == 15
    found: list[str] = []
    after = None
    while page := files_store.search_sessions("word", limit=size, after=after):
        assert len(page) <= size
        found += [hit.cursor for hit in page]
        after = page[-1].cursor
    assert found == everything


def test_what_is_no_cursor_is_refused(files_store: StateStore) -> None:
    fill(files_store, "s", "word")
    for after in ("", "nonsense", "ff", "2d31"):
        with pytest.raises(InvalidCursor):
            files_store.search_sessions("word", after=after)


def test_an_index_that_cannot_be_written_is_a_clear_error(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, "s", "word")
    files_store.search_sessions("word")
    files_store.append("s", UserMessage("more"))
    monkeypatch.setattr("statestore.engines.files.log_file.TIMEOUT", 0.05)
    connection = sqlite3.connect(directory / ".statestore" / "changes.db", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=r"changes\.db: database is locked"):
        files_store.search_sessions("more")
    connection.execute("ROLLBACK")
    connection.close()
    assert places(files_store, "more") == {("s", 2)}
