"""What a mutant is: one change of the package's text that breaks a promise, and the test that must fail with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parent.parent.parent / "src" / "statestore"
TESTS = Path(__file__).parent.parent


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

    def is_noticed(self, place: Path, *, seconds: float = 600) -> bool:
        """Whether its test fails on a package with this change, made in an empty directory, and passes without."""
        return self._run(place / "sound", is_broken=False, seconds=seconds) == 0 and (
            self._run(place / "broken", is_broken=True, seconds=seconds) == 1
        )

    def _run(self, source: Path, *, is_broken: bool, seconds: float) -> int:
        package = source / "statestore"
        shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
        if is_broken:
            text = (package / self.file).read_text()
            assert text.count(self.old) == 1, f"{self.file} has not exactly one {self.old!r}"
            (package / self.file).write_text(text.replace(self.old, self.new))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(TESTS / self.noticed_by)]
        environment = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            ran = subprocess.run(
                command, cwd=TESTS.parent, env=environment, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return 1  # it hangs: that is noticed, too
        return ran.returncode
