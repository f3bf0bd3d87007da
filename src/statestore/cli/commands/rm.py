"""``statestore rm``: remove a document."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore.cli.document_places import find_whole_document
from statestore.cli.failures import NOT_FOUND, CommandFailed
from statestore.cli.opening import writing
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore rm notes/today",
    "statestore rm projects/alpha/plan.json",
)


def rm(
    ctx: typer.Context,
    document: Annotated[str, typer.Argument(metavar="CATEGORY/NAME", help="With its kind, if there are several.")],
    as_json: Json = False,
) -> None:
    """Remove a document. There is no trash for documents: what goes is gone."""
    with writing(ctx) as store:
        found = find_whole_document(store, document)
        is_gone = store.delete_file(found.category, found.name, kind=found.kind)
    place = f"{found.category}/{found.name}.{found.kind}"
    if not is_gone:
        raise CommandFailed(f"{place} was removed by somebody else just now", NOT_FOUND)
    if as_json:
        print_json({"category": found.category, "name": found.name, "kind": found.kind, "removed": True})
    else:
        print_line(f"removed {on_one_line(place)}")
