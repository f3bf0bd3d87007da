"""``delete`` and ``rm``: repeated, they never take away something else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from program import lines_of, refused, run

from statestore import Session, StateStore

ALL = {"trip", "trip-again"}


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
    assert "there is no session 'trip': did you mean\n  trip-again" in complaint
    assert ids_in(twice) == {"trip-again"}


def test_only_what_goes_forever_has_to_be_named_whole(twice: Path) -> None:
    assert "did you mean\n  trip-again" in refused(twice, 1, "delete", "trip-a", "--forever")
    assert len(lines_of(twice, "rewind", "trip-a", "--to", "0")) == 1
    assert lines_of(twice, "delete", "trip-a")[0].startswith("deleted trip-again")
    assert ids_in(twice) == {"trip"}


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
