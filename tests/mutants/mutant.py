"""What a mutant is: one change of the package's text that breaks a promise, and the test that must fail with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent.parent / "src" / "statestore"
TESTS = Path(__file__).parent.parent
PATIENCE = 600.0
"""Seconds after which a test is taken for hanging."""


@dataclass(frozen=True)
class Mutant:
    """A text in a file of the package, once there, what it becomes, and who notices."""

    breaks: str
    """What is gone: "a renamed file's directory is not flushed"."""
    file: str
    """From the package's directory: ``engines/files/directory.py``."""
    old: str
    new: str
    noticed_by: str
    """The test that must fail, as pytest names it, from the directory of the tests."""

    def is_possible(self) -> bool:
        """Whether the text to change is still there, once."""
        return (PACKAGE / self.file).read_text().count(self.old) == 1

    def is_noticed(self) -> bool:
        """Whether its test fails on a package with this change, and passes without."""
        return _is_sound(self.noticed_by) and _run(self.noticed_by, self) == 1


@cache
def _is_sound(test: str) -> bool:
    return _run(test, None) == 0


def _run(test: str, mutant: Mutant | None) -> int:
    """Run a test on a copy of the package; pytest's exit code, 1 if it hangs."""
    with tempfile.TemporaryDirectory(prefix="statestore-mutant-") as place:
        package = Path(place) / "statestore"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            text = (package / mutant.file).read_text()
            assert text.count(mutant.old) == 1, f"{mutant.file} has not exactly one {mutant.old!r}"
            (package / mutant.file).write_text(text.replace(mutant.old, mutant.new))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(TESTS / test)]
        environment = os.environ | {"PYTHONPATH": place, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            ran = subprocess.run(
                command, cwd=TESTS.parent, env=environment, capture_output=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            return 1  # it hangs: that is noticed, too
        return ran.returncode
