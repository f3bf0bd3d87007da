"""Asking somebody who sits at a terminal."""

from __future__ import annotations

import signal
import sys

import typer


def can_ask() -> bool:
    """Whether somebody sits there who can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(question: str) -> None:
    """Go on if the answer is yes; else the command ends. Ctrl-C ends it at once, since nothing was changed yet."""
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would sleep through one that comes right now
    try:
        typer.confirm(question, abort=True, err=True)
    finally:
        signal.signal(signal.SIGINT, before)
