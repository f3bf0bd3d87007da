"""The demo does what it says, and says so plainly in a pipe."""

from __future__ import annotations

import subprocess
import sys


def test_the_demo_loses_nothing_and_is_plain_in_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "statestore.demo"], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert not set("─│╭╮╰╯━┃").intersection(done.stdout)
    for word in ("kill -9", "acknowledged", "prune"):
        assert word in done.stdout.lower()
