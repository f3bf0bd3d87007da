"""``export`` of a damaged store: a line and an exit code for what is left out, and the rest is exported."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest
from program import Done, refused, run

GOLDEN = Path(__file__).parent.parent / "data" / "golden"


def exported(done: Done) -> set[str]:
    ends = (json.loads(line).get("end") for line in done.stdout.splitlines())
    return {end for end in ends if end is not None}


def test_a_file_that_is_no_session_is_named_and_the_exit_code_tells(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "state")
    (tmp_path / "state" / "sessions" / "torn.json").write_text("{")
    done = run(tmp_path, "--store", "file:state", "export", "-o", "all.json", "--json")
    assert "statestore: session torn is left out: " in done.stderr
    assert (done.returncode, json.loads(done.stdout)["sessions"]) == (1, 6)
    assert len(json.loads((tmp_path / "all.json").read_text())["sessions"]) == 6


@pytest.mark.parametrize("narrowed", ["--user=user-plain", "--project=project-9"])
def test_a_file_that_is_no_session_may_be_anybodys(tmp_path: Path, narrowed: str) -> None:
    shutil.copytree(GOLDEN, tmp_path / "state")
    whole = run(tmp_path, "--store", "file:state", "export", narrowed)
    assert (whole.returncode, whole.stderr) == (0, "")
    (tmp_path / "state" / "sessions" / "torn.json").write_text("{")
    done = run(tmp_path, "--store", "file:state", "export", narrowed)
    assert "statestore: session torn is left out: " in done.stderr
    assert (done.returncode, done.stdout) == (1, whole.stdout)
    (found,) = exported(done)
    assert run(tmp_path, "--store", "file:state", "export", found).returncode == 0


def test_a_damaged_session_does_not_stop_the_export_of_a_user(here: Path) -> None:
    with sqlite3.connect(here / "state.db") as connection:
        connection.execute("UPDATE sessions SET created = 'then' WHERE id = 'tokyo-weather'")
    connection.close()
    done = run(here, "export", "--user", "bob")
    assert "session tokyo-weather is left out" in done.stderr
    assert done.returncode == 1
    assert exported(done)
    assert "tokyo-weather" not in exported(done)
    assert "tokyo-weather" in refused(here, 3, "export", "tokyo-weather")
