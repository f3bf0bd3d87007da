"""docs/cli.md is true, and complete."""

from __future__ import annotations

import re

from documenting import BLOCK, PAGE, documented, steady

from statestore.cli.command_table import COMMANDS

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_shows_what_the_commands_print() -> None:
    assert steady(documented(TEXT)) == steady(TEXT), "run python tests/cli/documenting.py"


def test_the_page_has_a_section_and_an_example_for_every_command() -> None:
    titled = {name for title in re.findall(r"^### (.*)$", TEXT, re.MULTILINE) for name in title.split(", ")}
    assert titled == set(COMMANDS)
    shown = "".join(block[0] for block in BLOCK.finditer(TEXT))
    ran = {word for line in re.findall(r"^\$ (.*)$", shown, re.MULTILINE) for word in line.split()}
    assert set(COMMANDS) - ran == {"demo"}  # what it prints differs each time, and it takes seconds
