"""Complaints and advice are in the words of the command line, and can be followed there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from program import lines_of, refused, run

from children import SOURCE
from servers.valkey import server
from statestore import NotSupported
from statestore.cli.rewording import WORDS
from statestore.store import capabilities


def test_what_is_reworded_is_what_the_library_says() -> None:
    library = "".join(
        path.read_text(encoding="utf-8")
        for path in (SOURCE / "statestore").rglob("*.py")
        if "cli" not in path.relative_to(SOURCE).parts
    )
    assert [words for words in WORDS if words not in library] == []


def test_a_document_that_is_there_already_is_refused_with_the_option_that_refuses_it(here: Path) -> None:
    complaint = refused(here, 1, "put", "notes/today.md", "x", "--only-new")
    assert "notes/today.md exists already: read its version, or leave --only-new out" in complaint


@pytest.mark.parametrize("arguments", [("put", "sessions/x.json", "{}"), ("rm", "sessions/trip")], ids=" ".join)
def test_a_session_that_is_taken_for_a_document_is_refused_with_the_commands_for_sessions(
    here: Path, arguments: tuple[str, ...]
) -> None:
    assert refused(here, 2, *arguments) == (
        "statestore: the category 'sessions' holds sessions: use statestore new, say and delete\n"
    )


def test_a_store_that_is_not_there_to_be_copied_is_named_and_nothing_more(tmp_path: Path) -> None:
    complaint = refused(tmp_path, 3, "copy", "nowhere.db", "other.db")
    assert complaint == f"statestore: there is no store at {tmp_path}/nowhere.db\n"


def test_a_server_that_flushes_late_is_complained_of_until_somebody_says_that_it_may(tmp_path: Path) -> None:
    with server("--appendonly", "yes", "--appendfsync", "everysec", durable=False) as late:
        lines_of(tmp_path, "--store", late.url, "new", "trip")
        for command in ("check", "repair"):
            done = run(tmp_path, "--store", late.url, command)
            assert done.returncode == 1
            assert done.stdout.endswith("    set appendfsync to always, or add --relaxed\n")
            assert "add --relaxed" in run(tmp_path, "--store", late.url, command, "--json").stdout
            assert lines_of(tmp_path, "--store", late.url, command, "--relaxed") == [
                "nothing is wrong: 1 session and all documents were looked at"
            ]


def test_a_file_that_is_damaged_is_told_with_the_command_that_moves_it_aside(tmp_path: Path) -> None:
    agents = ("--store", "file:agents")
    lines_of(tmp_path, *agents, "new", "trip")
    (tmp_path / "agents" / "sessions" / "torn.json").write_text("{")
    done = run(tmp_path, *agents, "check")
    assert done.stdout.endswith("    it is kept as it is; mend it by hand, or statestore repair moves it aside\n")
    assert run(tmp_path, *agents, "repair").returncode == 0
    assert run(tmp_path, *agents, "check").returncode == 0


def test_what_an_engine_does_not_offer_is_told_with_the_engines_that_do() -> None:
    engine: Any = SimpleNamespace(url="valkey://somewhere?cluster=true")
    with pytest.raises(NotSupported, match=r"does not offer watch: .*valkey: \(one server\) and file: do"):
        capabilities.watching(engine)
    with pytest.raises(NotSupported, match="does not offer search: sqlite:"):
        capabilities.searching(engine)


def test_help_says_who_can_be_repaired_and_where_numbers_are_shown(tmp_path: Path) -> None:
    assert "(file:) or on Valkey (valkey:)" in " ".join(lines_of(tmp_path, "repair", "--help"))
    assert "  Records are numbered: statestore show ID shows the numbers." in lines_of(tmp_path, "fork", "--help")
