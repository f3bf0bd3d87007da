"""The examples: run as a user runs them, or loaded for what they define."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from children import PATIENCE, SOURCE

EXAMPLES = SOURCE.parent / "examples"
INSISTENT_WARNING = re.compile(r"^\S+/site-packages/\S+: \w+Warning: .*\n(?:  .*\n)?", re.MULTILINE)
"""Of a framework that makes itself heard where warnings are ignored."""


def output_of(example: str, *arguments: str) -> list[str]:
    """The lines that an example prints; it must end well, and complain of nothing (a framework's warnings aside)."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{example}.py"), *arguments],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    assert (done.returncode, INSISTENT_WARNING.sub("", done.stderr)) == (0, ""), done.stderr
    return done.stdout.splitlines()


def loaded(example: str) -> ModuleType:
    """An example as a module."""
    path: Path = EXAMPLES / f"{example}.py"
    spec = importlib.util.spec_from_file_location(f"example_{example}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
