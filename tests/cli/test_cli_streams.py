"""With standard input, output or error closed, a command does what it can, and its exit code tells."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from program import command, environment

from children import PATIENCE


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("ls",), 0),
        (("--help",), 0),
        (("show", "trip"), 0),
        (("cat", "notes/today"), 0),
        (("export", "trip"), 0),
        (("say", "trip", "hi"), 0),
        (("show", "nobody"), 1),
        (("ls", "--nope"), 2),
        (("prune", "--keep", "1"), 2),
        (("--store", "no.db", "ls"), 3),
    ],
    ids=str,
)
def test_a_closed_stream_changes_no_exit_code(here: Path, closed: str, arguments: tuple[str, ...], code: int) -> None:
    done = ended(here, closed, *arguments)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "mistake" not in done.stderr


@pytest.mark.parametrize("arguments", [("say", "trip"), ("prune", "--keep", "1"), ("event", "trip", "call")], ids=str)
def test_closed_standard_input_holds_nothing_and_can_answer_nothing(here: Path, arguments: tuple[str, ...]) -> None:
    done = ended(here, "<&-", *arguments)
    assert done.returncode == 2
    assert "standard input is empty" in done.stderr or "nobody to ask" in done.stderr


def ended(place: Path, closed: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """How a command ends whose shell has closed some of its streams."""
    return subprocess.run(
        ["bash", "-c", f'"$@" {closed}', "-", *command(*arguments)],
        cwd=place,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
