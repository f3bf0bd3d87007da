"""Scenes around ``os.fork``: what a child of one does and tells, and how one is played by an interpreter of its own."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, which are what this is about
PATIENCE = 6


def in_child(work: Callable[[], Any], *, leave: Callable[[int], Any] = os._exit) -> Callable[[], Any]:
    """Fork; the child works and tells. What it told comes with a call; ``"hangs"`` if it never did."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE)
        try:
            told = work()
        except BaseException as error:  # noqa: BLE001 - told to the test
            told = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(told).encode())
        os.close(writing)
        leave(0)
    os.close(writing)

    def told_by_child() -> Any:
        with open(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        return json.loads(text) if text else "hangs"

    return told_by_child


def play(scenes: Mapping[str, Callable[[str], Any]]) -> NoReturn:
    """Play the scene that the command line names, with its place; print what came of it as JSON."""
    print(json.dumps(scenes[sys.argv[1]](sys.argv[2])), flush=True)
    os._exit(0)  # threads of a scene that hangs must not keep the interpreter
