"""Asking somebody who sits at a terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Final, TypeVar

import typer

from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.printing import print_line

T = TypeVar("T")

MOST_SHOWN: Final = 50
"""How many are listed on a terminal before it is asked."""


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


def check_can_agree(deed: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Refuse a command that asks before its deed where nobody could answer, unless it was told to go on or to look."""
    if yes or dry_run:
        return
    if not can_ask():
        raise CommandFailed(f"there is nobody to ask: add --yes to {deed}, or --dry-run to look", WRONG_USAGE)
    if as_json:
        raise CommandFailed("--json is for scripts, which cannot be asked: add --yes or --dry-run", WRONG_USAGE)


def agree(
    found: T,
    look: Callable[[], T],
    *,
    names: Callable[[T], set[str]],
    show: Callable[[T], None],
    question: Callable[[T], str],
) -> None:
    """Ask about what was found and shown; and look again, as long as there are others by then."""
    agreed: set[str] = set()
    while not names(found) <= agreed:
        if agreed:
            print_line("meanwhile there are others:")
            show(found)
        ask(question(found))
        agreed = names(found)
        found = look()
