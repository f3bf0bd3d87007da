"""What a command refuses leaves nothing behind, and is refused in the words of the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from program import Terminal, lines_of, refused, run

from statestore import StateStore, UserMessage


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (2, ("put", "notes/x.json", "{bad")),
        (2, ("put", "notes/x.json", "[" * 200 + "]" * 200)),
        (2, ("put", "notes/x.md", b"\xff".decode(errors="surrogateescape"))),
        (2, ("put", "../x.md", "a")),
        (2, ("put", "sessions/x.json", "{}")),
        (3, ("put", "notes/x.md", "a", "--if-version", "0123456789abcdef")),
        (2, ("new", "../x")),
    ],
    ids=("no JSON", "JSON too deep", "no UTF-8", "no name", "a session", "a version", "no id"),
)
def test_a_command_that_is_refused_makes_no_store(tmp_path: Path, code: int, arguments: tuple[str, ...]) -> None:
    refused(tmp_path, code, *arguments)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "arguments", [("put", "notes/x.json"), ("event", "trip", "call")], ids=lambda arguments: arguments[0]
)
def test_json_with_a_name_twice_is_refused_because_one_would_be_lost(here: Path, arguments: tuple[str, ...]) -> None:
    complaint = refused(here, 2, *arguments, '{"a": [{"b": 1, "d": 1, "d": 2}]}')
    assert "the JSON has 'd' twice in one object" in complaint
    lines_of(here, *arguments, '{"a": [{"d": 1}, {"d": 2}], "d": 18446744073709551615}')
    assert "not JSON" in refused(here, 2, *arguments, "1" * 5000)


def test_a_pager_that_no_shell_could_run_is_left_out(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.append("trip", *(UserMessage(f"Line {number}") for number in range(40)))
    terminal = Terminal(here, 80, "show", "trip", PAGER="'unclosed")
    assert "Line 39" in terminal.end()
    assert terminal.process.returncode == 0


def test_a_refused_copy_names_the_option_that_helps(here: Path) -> None:
    lines_of(here, "--store", "other.db", "new", "alone")
    complaint = refused(here, 1, "copy", "state.db", "other.db")
    assert "--into-existing leaves alone what only the target has" in complaint
    assert run(here, "copy", "state.db", "other.db", "--into-existing").returncode == 0
