"""Builds the package twice, in two directories, from files of different times and permissions, and compares.

    python tools/reproduce.py

Prints the hashes of the wheel and the source archive, and fails if the two builds differ in a byte. Whoever builds the
same sources with the same ``SOURCE_DATE_EPOCH`` and the same hatchling gets these hashes. Needs no network.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOT_COPIED = shutil.ignore_patterns(".*venv*", ".git", "__pycache__", "dist", "build", ".pytest_cache", ".hypothesis")
EPOCH = "1767225600"
"""2026-01-01, unless ``SOURCE_DATE_EPOCH`` says otherwise: what the files in the archives are dated."""


def main() -> int:
    """Build twice; 1 if that gave two different things."""
    with tempfile.TemporaryDirectory(prefix="statestore-build-") as place:
        sources = Path(place, "sources")
        shutil.copytree(ROOT, sources, ignore=NOT_COPIED)
        first = _built(sources, Path(place, "here"), mode=0o644, moment=1_000_000_000)
        second = _built(sources, Path(place, "somewhere", "else"), mode=0o600, moment=1_600_000_000)
    for name, digest in sorted(first.items()):
        sys.stdout.write(f"{digest}  {name}\n")
    if first == second:
        return 0
    sys.stderr.write(f"the second build differs: {second}\n")
    return 1


def _built(sources: Path, directory: Path, *, mode: int, moment: int) -> dict[str, str]:
    """The hashes of what a copy of the sources is built into."""
    shutil.copytree(sources, directory)
    for path in directory.rglob("*"):
        if path.is_file():
            path.chmod(mode)
        os.utime(path, (moment, moment))
    environment = {"SOURCE_DATE_EPOCH": EPOCH} | dict(os.environ)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build"], cwd=directory, env=environment, check=True, capture_output=True
    )
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (directory / "dist").iterdir()}


if __name__ == "__main__":
    sys.exit(main())
