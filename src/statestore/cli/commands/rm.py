"""``statestore rm``: remove a document."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore.cli.document_places import document_place, find_document
from statestore.cli.failures import NOT_FOUND, WRONG_USAGE, CommandFailed
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
        found = find_document(store, document)
        there = [info for info in store.list_documents(found.category) if info.name == found.name]
        if document_place(document).kind is None and len(there) > 1:
            choices = [f"{info.category}/{info.name}.{info.kind}" for info in there]
            raise CommandFailed(f"{document} is several documents: say which", WRONG_USAGE, choices=choices)
        is_gone = store.delete_file(found.category, found.name, kind=found.kind)
    place = f"{found.category}/{found.name}.{found.kind}"
    if not is_gone:
        raise CommandFailed(f"{place} was removed by somebody else just now", NOT_FOUND)
    if as_json:
        print_json({"category": found.category, "name": found.name, "kind": found.kind, "removed": True})
    else:
        print_line(f"removed {on_one_line(place)}")
