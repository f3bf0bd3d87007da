"""Where ``export`` writes to: never over the store, and to standard output as the shell opened it."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from program import command, environment, lines_of, refused

from children import PATIENCE


def test_the_store_itself_is_never_written_over(here: Path) -> None:
    before = lines_of(here, "export")
    for name in ("state.db", "./state.db", "state.db-wal", "state.db-turn"):
        assert "is a part of the store" in refused(here, 2, "export", "-o", name)
    assert lines_of(here, "export") == before
    lines_of(here, "copy", "state.db", "file:dir")
    assert "another place" in refused(here, 2, "--store", "file:dir", "export", "-o", "dir/sessions/trip.json")
    assert lines_of(here, "--store", "file:dir", "export") == before


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_path_is_appended_to_and_holds_nothing_but_the_export(here: Path, place: str) -> None:
    (here / "out").write_text("before\n")
    text = shlex.join(command("export", "-o", place)) + " >> out"
    subprocess.run(["bash", "-c", text], cwd=here, env=environment(), timeout=PATIENCE, check=True)
    assert (here / "out").read_text().splitlines() == ["before", *lines_of(here, "export")]


def test_another_descriptor_is_written_to_where_the_shell_opened_it(here: Path) -> None:
    (here / "out").write_text("before\n")
    text = shlex.join(command("export", "-o", "/dev/fd/7")) + " 7>> out"
    subprocess.run(["bash", "-c", text], cwd=here, env=environment(), timeout=PATIENCE, check=True)
    assert (here / "out").read_text().splitlines() == ["before", *lines_of(here, "export")]
