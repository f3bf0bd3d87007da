"""``statestore repair``: mend what can be mended without losing anything."""

from __future__ import annotations

from typing import Final

import typer

from statestore.cli.commands.check import tell_problems
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, Relaxed

EXAMPLES: Final = (
    "statestore repair",
    "statestore --store file:agents repair --json",
)


def repair(ctx: typer.Context, relaxed: Relaxed = False, as_json: Json = False) -> None:
    """Mend what check finds, in a directory (file:) or on Valkey (valkey:), and say what was done.

    Files that cannot be read are moved aside, into .statestore/aside; nothing is ever deleted. Other engines cannot:
    check tells what to do.
    """
    with writing(ctx, relaxed=relaxed) as store:
        tell_problems(store, store.check(repair=True), as_json=as_json)
