"""The demo and the benchmarks: what they are asked for wrongly is refused before anything happens."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from program import Terminal, path_that_begins_with, refused, run, run_process

ROOT = Path(__file__).parent.parent.parent
WRITERS_WAIT = """
import select, sys
if "--write-to" in sys.orig_argv:
    reader_goes = select.poll()
    reader_goes.register(1, 0)
    reader_goes.poll()
"""
"""The demo does not go on while its writer has stored nothing."""


def test_the_demo_is_kept_only_where_nothing_is(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "theirs").write_text("")
    for name in ("full", "full/theirs"):
        complaint = refused(tmp_path, 2, "demo", "--keep", name)
        assert complaint == f"statestore: {name} is not empty: the demo is kept in a new or an empty directory\n"
        itself = run_process(tmp_path, [sys.executable, "-m", "statestore.demo", "--keep", name])
        assert (itself.returncode, itself.stdout) == (2, "")
        assert itself.stderr.endswith(f"error: {name} is not empty: the demo is kept in a new or an empty directory\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["full", "theirs"]
    assert refused(tmp_path, 3, "demo", "--keep", "full/theirs/below").count("\n") == 1


def test_ctrl_c_ends_the_demo_silently(tmp_path: Path) -> None:
    path = path_that_begins_with(WRITERS_WAIT, tmp_path)
    terminal = Terminal(tmp_path, 80, "demo", PYTHONPATH=path)
    terminal.wait_for("A writer saves exchanges")
    terminal.press("\x03")
    assert terminal.end().replace("^C", "").count("\n") == 1
    assert terminal.process.returncode == -signal.SIGINT


def test_the_demo_is_left_where_it_was_kept(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    done = run(tmp_path, "demo", "--keep", "kept")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Everything acknowledged is there, once." in done.stdout
    assert "Which ferry arrives before noon?" in run(tmp_path, "--store", "kept/state.db", "ls").stdout


@pytest.mark.parametrize("module", ["benchmarks", "benchmarks.postgres", "benchmarks.valkey"])
def test_the_benchmarks_tell_what_they_do_and_refuse_what_they_do_not_know(module: str) -> None:
    told = run_process(ROOT, [sys.executable, "-m", module, "--help"])
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith(f"usage: python -m {module} [-h]")
    assert "Measure " in told.stdout
    for argument in ("--quik", "sqlite"):
        done = run_process(ROOT, [sys.executable, "-m", module, argument])
        assert (done.returncode, done.stdout) == (2, "")
        assert f"unrecognized arguments: {argument}" in done.stderr
