"""docs/cli.md is true, and complete."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from documenting import BLOCK, PAGE, documented, steady
from program import run

from statestore import Session, StateStore
from statestore.cli.command_table import COMMANDS

TEXT = PAGE.read_text(encoding="utf-8")
FIELDS = {
    name: [re.findall(r"`(\w+)`", shape) for shape in cell.split(";")]
    for names, cell in re.findall(r"^\| (`.*?`) \| (.*) \|$", TEXT, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}
"""The fields of what each command prints as JSON: of every kind of line that it prints."""


def test_the_page_shows_what_the_commands_print() -> None:
    assert steady(documented(TEXT)) == steady(TEXT), "run python tests/cli/documenting.py"


def test_the_page_has_a_section_and_an_example_for_every_command() -> None:
    titled = {name for title in re.findall(r"^### (.*)$", TEXT, re.MULTILINE) for name in title.split(", ")}
    assert titled == set(COMMANDS)
    shown = "".join(block[0] for block in BLOCK.finditer(TEXT))
    ran = {word for line in re.findall(r"^\$ (.*)$", shown, re.MULTILINE) for word in line.split()}
    assert set(COMMANDS) - ran == {"demo"}  # what it prints differs each time, and it takes seconds


def test_the_page_tells_the_fields_of_every_command_but_the_demo() -> None:
    assert set(FIELDS) == set(COMMANDS) - {"demo"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("ls",),
        ("show", "trip"),
        ("tail", "trip"),
        ("search", "ferry"),
        ("stats",),
        ("docs",),
        ("docs", "notes"),
        ("cat", "notes/today"),
        ("new",),
        ("say", "trip", "hi"),
        ("reply", "trip", "hi"),
        ("event", "trip", "call", "{}"),
        ("fork", "trip"),
        ("rewind", "trip", "--to", "0"),
        ("put", "notes/x.md", "a"),
        ("rm", "notes/today"),
        ("delete", "trip"),
        ("prune", "--keep", "1", "--dry-run"),
        ("prune", "--keep", "1", "--yes"),
        ("trash",),
        ("trash", "--empty", "--yes"),
        ("restore", "thrown"),
        ("erase", "alice", "--yes"),
        ("export", "-o", "all.jsonl"),
        ("import", "one.jsonl"),
        ("copy", "state.db", "file:other"),
        ("copy", "state.db", "file:apart", "--mirror", "--dry-run"),
        ("backup", "other.db"),
        ("compact",),
    ],
    ids=" ".join,
)
def test_the_fields_are_those_that_the_page_tells(here: Path, arguments: tuple[str, ...]) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.save_session(Session("alice", "thrown"))
        store.delete_session("thrown", trash_hours=1)
    if "--mirror" in arguments:
        assert run(here, "--store", "file:apart", "new", "trip").returncode == 0
    if arguments[0] == "import":
        assert run(here, "export", "trip", "-o", "one.jsonl").returncode == 0
    done = run(here, *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines
    for line in lines:
        assert list(json.loads(line)) in FIELDS[arguments[0]]
