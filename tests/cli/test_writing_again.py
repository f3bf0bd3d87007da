"""``delete`` and ``rm``: repeated, they never take away something else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from program import Terminal, lines_of, refused, run, screen

from statestore import Session, SessionConflict, StateStore

ALL = {"trip", "trip-again"}
IN_TRASH = "session trip is in the trash: statestore restore trip gets it back"


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A directory whose store has two sessions, and the id of one begins as the other's."""
    with StateStore.open(tmp_path / "state.db", durability="relaxed") as store:
        for session_id in sorted(ALL):
            session = Session("alice", session_id)
            session.add_user_message("Which ferry?")
            store.save_session(session)
    return tmp_path


def ids_in(place: Path) -> set[str]:
    with StateStore.open(place / "state.db", read_only=True) as store:
        return {summary.id for summary in store.list_sessions()}


@pytest.mark.parametrize("options", [(), ("--forever",)], ids=str)
def test_to_delete_a_session_again_deletes_no_other(twice: Path, options: tuple[str, ...]) -> None:
    lines_of(twice, "delete", "trip", *options)
    complaint = refused(twice, 1, "delete", "trip", *options)
    told = "there is no session 'trip': did you mean\n  trip-again" if options else IN_TRASH
    assert told in complaint
    assert ids_in(twice) == {"trip-again"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "trip"),
        ("tail", "trip"),
        ("export", "trip"),
        ("say", "trip", "hi"),
        ("fork", "trip"),
        ("rewind", "trip", "--to", "0"),
        ("delete", "trip", "--forever"),
    ],
    ids=" ".join,
)
def test_what_is_in_the_trash_is_said_to_be_there_and_is_not_the_beginning_of_another(
    twice: Path, arguments: tuple[str, ...]
) -> None:
    lines_of(twice, "delete", "trip")
    assert refused(twice, 1, *arguments) == f"statestore: {IN_TRASH}\n"
    with StateStore.open(twice / "state.db", read_only=True) as store:
        assert [entry.kind for entry in store.timeline("trip-again")] == ["user"]


def test_what_is_in_the_trash_is_found_by_how_its_id_begins(twice: Path) -> None:
    lines_of(twice, "delete", "trip-again")
    assert "session trip-again is in the trash" in refused(twice, 1, "show", "trip-a")
    lines_of(twice, "delete", "trip")
    assert "there is no session 'tri'" in refused(twice, 1, "show", "tri")
    assert lines_of(twice, "restore", "trip") == ["restored trip"]
    assert lines_of(twice, "show", "tri")[1] == "id          trip"


def test_to_restore_a_session_whose_id_is_taken_says_how_to_make_room(twice: Path) -> None:
    lines_of(twice, "delete", "trip")
    lines_of(twice, "new", "trip", "--user", "bob")
    complaint = refused(twice, 1, "restore", "trip")
    assert complaint == (
        "statestore: another session has the id trip now: statestore delete trip --forever makes room; "
        "to keep that one too, statestore fork trip --id NEW before\n"
    )
    lines_of(twice, "fork", "trip", "--id", "bobs")
    lines_of(twice, "delete", "trip", "--forever")
    assert lines_of(twice, "restore", "trip", "--json") == ['{"session_id":"trip","user_id":"alice","records":1}']
    assert ids_in(twice) == {"trip", "trip-again", "bobs"}


def test_a_conflict_of_ids_says_nothing_that_a_restore_cannot_do(twice: Path) -> None:
    with StateStore.open(twice / "state.db") as store:
        store.delete_session("trip", trash_hours=1)
        store.get_or_create_session("bob", "trip")
        with pytest.raises(SessionConflict, match="use it, delete it, or choose another id for a new one"):
            store.restore_session("trip")
        store.delete_session("trip")
        assert store.restore_session("trip").user_id == "alice"


CHANGING = (("say", "trip-a", "x"), ("delete", "trip-a"), ("export", "trip-a"), ("fork", "trip-a", "--id", "new"))
FOR_GOOD = (("delete", "trip-a", "--forever"), ("rewind", "trip-a", "--to", "0"))


@pytest.mark.parametrize("arguments", CHANGING + FOR_GOOD, ids=" ".join)
def test_scripts_name_what_they_change_whole(twice: Path, arguments: tuple[str, ...]) -> None:
    before = lines_of(twice, "export")
    assert "no session 'trip-a': did you mean\n  trip-again" in refused(twice, 1, *arguments)
    assert lines_of(twice, "export") == before


@pytest.mark.parametrize("arguments", CHANGING, ids=" ".join)
def test_on_a_terminal_an_id_may_be_cut_short_and_is_told(twice: Path, arguments: tuple[str, ...]) -> None:
    before = lines_of(twice, "export", "trip")
    assert "statestore: trip-a is short for trip-again (" in screen(twice, 100, *arguments)
    assert "is short for" not in screen(twice, 100, "say", "trip-again" if arguments[0] != "delete" else "trip", "x")
    if arguments[0] != "delete":
        assert lines_of(twice, "export", "trip") == before


@pytest.mark.parametrize("arguments", FOR_GOOD, ids=" ".join)
def test_what_cannot_be_undone_is_named_whole_on_a_terminal_too(twice: Path, arguments: tuple[str, ...]) -> None:
    before = lines_of(twice, "export")
    terminal = Terminal(twice, 100, *arguments)
    assert "no session 'trip-a'" in terminal.end()
    assert lines_of(twice, "export") == before


def test_a_document_is_removed_by_its_whole_name_only(twice: Path) -> None:
    for name in ("n/m.json", "n/m.json.md"):
        lines_of(twice, "put", name, "{}")
    lines_of(twice, "rm", "n/m.json")
    assert "there is no document 'n/m.json': did you mean\n  n/m.json.md" in refused(twice, 1, "rm", "n/m.json")
    assert lines_of(twice, "cat", "n/m.json") == ["{}"]
    assert lines_of(twice, "rm", "n/m.json.md") == ["removed n/m.json.md"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("restore", ""),
        ("delete", "", "--forever"),
        ("rewind", "", "--to", "0"),
        ("show", ""),
        ("tail", ""),
        ("say", "", "hi"),
        ("fork", ""),
        ("fork", "trip", "--id", ""),
        ("new", ""),
        ("export", ""),
    ],
    ids=" ".join,
)
def test_an_empty_id_is_refused(twice: Path, arguments: tuple[str, ...]) -> None:
    lines_of(twice, "delete", "trip-again")
    refused(twice, 2, *arguments)
    assert ids_in(twice) == {"trip"}


def test_what_was_deleted_is_told_before_a_damaged_session_is_complained_of(twice: Path) -> None:
    with closing(sqlite3.connect(twice / "state.db")) as connection:
        connection.execute("UPDATE records SET body = '{' WHERE rowid = (SELECT max(rowid) FROM records)")
        connection.commit()
    done = run(twice, "delete", "trip", "trip-again")
    assert (done.returncode, done.stdout[:13]) == (3, "deleted trip:")
    assert "only --forever deletes it" in done.stderr
    assert lines_of(twice, "delete", "trip-again", "--forever") == ["deleted trip-again"]
