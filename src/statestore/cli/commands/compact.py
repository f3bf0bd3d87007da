"""``statestore compact``: give back the room of what was deleted."""

from __future__ import annotations

from typing import Final

import typer

from statestore.cli.opening import writing
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line, size_text

EXAMPLES: Final = (
    "statestore compact",
    "statestore erase alice --yes && statestore compact",
)


def compact(ctx: typer.Context, as_json: Json = False) -> None:
    """Write an SQLite store anew, with nothing left of what was said in deleted sessions, and give the room back.

    Others go on reading, but for a rollback journal; who writes waits until it is done, or is refused after its
    timeout. It needs room for a second copy, for a while. Only ids and owners of deleted sessions stay, among the
    changes that are kept for watchers.
    """
    with writing(ctx) as store:
        freed = store.compact()
    if as_json:
        print_json({"freed": freed})
    else:
        print_line(f"compacted: {size_text(freed)} given back")
