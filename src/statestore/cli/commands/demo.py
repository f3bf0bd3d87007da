"""``statestore demo``: what the store does, in a few seconds."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Final

import typer

EXAMPLES: Final = (
    "statestore demo",
    "statestore demo --keep /tmp/demo && statestore --store /tmp/demo/state.db ls",
)


def demo(
    keep: Annotated[str | None, typer.Option("--keep", metavar="DIR", help="Work in this directory, keep it.")] = None,
) -> None:
    """Show what it does: a writer is killed with kill -9 again and again, and nothing it acknowledged is lost.

    It works in a directory of its own, and touches no store of yours.
    """
    command = [sys.executable, "-m", "statestore.demo", *(["--keep", keep] if keep else [])]
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own module
