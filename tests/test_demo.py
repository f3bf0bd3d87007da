"""The demo does what it says, and says so plainly in a pipe."""

from __future__ import annotations

import re
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
    kills = [
        list(map(int, row.groups()))
        for row in re.finditer(r"^ +(\d) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)$", done.stdout, re.M)
    ]
    assert [number for number, *_ in kills] == [1, 2, 3, 4]
    for _, acknowledged, found, twice, torn, _ in kills:
        assert found == acknowledged > 0
        assert (twice, torn) == (0, 0)
    assert "would delete" in done.stdout
