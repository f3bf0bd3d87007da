"""A contest of two processes: each writes through an adapter of its own into one session or thread.

A writer is a plain function in an importable module, ``write(url, name, count)``; it is named, not passed, because each
runs in an interpreter of its own. Both start when both are ready.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module

from children import PATIENCE, SOURCE

WRITES = 200
"""How many writes each of the two makes."""


def two_processes(write: Callable[..., object], url: str, *arguments: str, writes: int = WRITES) -> None:
    """Run ``write(url, name, writes, *arguments)`` in two processes at once; ``name`` is ``"a"`` or ``"b"``."""
    target = f"{write.__module__}:{write.__qualname__}"
    writers = [_started(target, url, name, str(writes), *arguments) for name in ("a", "b")]
    try:
        for writer in writers:
            assert writer.stdout is not None
            told = writer.stdout.readline()
            assert told == "ready\n", told + writer.communicate()[1]
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
        for writer in writers:
            _, complaint = writer.communicate(timeout=PATIENCE * 4)
            assert writer.returncode == 0, complaint
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


def _started(*arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(SOURCE), os.path.dirname(os.path.dirname(__file__)), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "adapters.contests", *arguments],
        env=os.environ | {"PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _main(target: str, url: str, name: str, writes: str, *arguments: str) -> None:
    module, _, function = target.partition(":")
    write = getattr(import_module(module), function)
    print("ready", flush=True)
    sys.stdin.readline()
    write(url, name, int(writes), *arguments)


if __name__ == "__main__":
    _main(*sys.argv[1:])
