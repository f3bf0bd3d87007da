"""``statestore demo``: what the store does, in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from statestore.cli.failures import NOT_FOUND

EXAMPLES: Final = (
    "statestore demo",
    "statestore demo --keep /tmp/demo && statestore --store /tmp/demo/state.db ls",
)


def demo(
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="DIR", help="Work in DIR, new or empty, and leave it there.")
    ] = None,
) -> None:
    """Show what it does: a writer is killed with kill -9 again and again, and nothing it acknowledged is lost.

    It works in a directory of its own, and touches no store of yours.
    """
    from statestore.demo import show_everything  # noqa: PLC0415 - its tables take longer to load than a help text

    if not show_everything(Path(keep) if keep else None):
        raise typer.Exit(NOT_FOUND)
