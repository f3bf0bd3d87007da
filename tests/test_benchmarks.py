"""The benchmarks are no tests, but they must be able to begin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_all_that_is_measured_can_be_imported_as_the_command_does() -> None:
    code = "import benchmarks.__main__, benchmarks.peers.grounds, tests.servers.postgres, tests.servers.valkey"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
