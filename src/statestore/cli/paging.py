"""Showing a long text through a pager, on a terminal: only if it is longer than the screen."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from typing import Final

from statestore.cli.printing import is_terminal

_LESS: Final = "FRX"
"""Colours pass, a short text is only printed, and the text stays on the screen. For people who have set no ``LESS``."""


def print_paged(pieces: Iterable[str]) -> None:
    """Print a text that comes in pieces; a long one goes through ``$PAGER``, or ``less``, while it is made."""
    command = _pager() if is_terminal() else None
    if command is None:
        for piece in pieces:
            sys.stdout.write(piece)
        return
    room = shutil.get_terminal_size().lines - 1
    waiting = iter(pieces)
    first: list[str] = []
    for piece in waiting:
        first.append(piece)
        room -= piece.count("\n")
        if room < 0:
            break
    if room >= 0:
        sys.stdout.writelines(first)
    else:
        _pipe_into(command, first, waiting)


def _pager() -> list[str] | None:
    """The pager's command; ``None`` if there is none, or none is wanted (``PAGER=cat``)."""
    try:
        command = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:  # a quotation mark that nothing closes: no shell could run it either
        return None
    return command if command and command != ["cat"] and shutil.which(command[0]) else None


def _pipe_into(command: list[str], *parts: Iterable[str]) -> None:
    sys.stdout.flush()
    environment = {"LESS": _LESS, "LESSCHARSET": "utf-8"} | os.environ
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8")  # noqa: S603
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's, as long as it runs
    try:
        assert pager.stdin is not None
        with pager.stdin as text:
            for part in parts:
                text.writelines(part)
    except BrokenPipeError:
        return  # who looks has seen enough
    finally:
        pager.wait()
        signal.signal(signal.SIGINT, before)
