"""``python tests/cli/documenting.py``: runs the commands that docs/cli.md shows, and writes what they print into it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from program import environment

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
VOLATILE = (
    (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?)?", "MOMENT"),
    (r"\bnow\b|\b\d+m\b", "AGE"),
    (r"\b\d+(\.\d)? k?B\b", "SIZE"),
    (r'"(size|bytes)":\d+', r'"\1":SIZE'),
    (r"\b([0-9a-f]{16}|[0-9a-f]{64})\b", "VERSION"),
    (r'"cursor":"[0-9a-f]+"', "CURSOR"),
    (r"[ -]{2,}", "  "),
)


def documented(page: str) -> str:
    """The page with what its commands print now."""
    with tempfile.TemporaryDirectory(prefix="statestore-docs-") as directory:
        place = Path(directory)
        (place / "here" / "elsewhere").mkdir(parents=True)
        program = place / "statestore"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m statestore "$@"\n')
        program.chmod(0o755)
        changes = {"PATH": f"{place}{os.pathsep}{os.environ['PATH']}", "USER": "you", "LOGNAME": "you"}
        return BLOCK.sub(_filled(place / "here", environment(**changes)), page).replace(
            str(place / "here"), "/srv/agent"
        )


def _filled(place: Path, variables: dict[str, str]) -> Callable[[re.Match[str]], str]:
    def fill(block: re.Match[str]) -> str:
        commands = [line for line in block[0].split("\n") if line.startswith("$ ")]
        return "".join(f"{line}\n{_printed(line[2:], place, variables)}" for line in commands)

    return fill


def _printed(line: str, place: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=place,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    text = done.stdout
    return text if not text or text.endswith("\n") else text + "\n"


def steady(page: str) -> str:
    """The page without what differs from run to run."""
    for pattern, name in VOLATILE:
        page = re.sub(pattern, name, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(documented(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
