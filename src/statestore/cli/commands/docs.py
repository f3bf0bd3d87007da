"""``statestore docs``: the documents of a category, or all categories."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore.cli.failures import CommandFailed
from statestore.cli.opening import reading
from statestore.cli.parameters import Json
from statestore.cli.printing import Column, print_json, print_table, size_text

EXAMPLES: Final = (
    "statestore docs",
    "statestore docs projects/alpha",
)


def docs(
    ctx: typer.Context,
    category: Annotated[str | None, typer.Argument(metavar="CATEGORY", help="Its documents; else, all.")] = None,
    as_json: Json = False,
) -> None:
    """List the documents of a category, or the categories there are."""
    with reading(ctx) as store:
        named = store.list_categories() if category is None else [category]
        held = {name: store.list_documents(name) for name in named}
        below = store.list_categories(category) if category and not held[category] else []
    if category is None:
        rows = [(name, len(infos), sum(info.size for info in infos)) for name, infos in held.items()]
        if as_json:
            for name, count, size in rows:
                print_json({"category": name, "documents": count, "size": size})
        elif rows:
            columns = (Column("category", stretches=True), Column("documents", is_number=True), Column("size", True))
            print_table(columns, [(name, str(count), size_text(size)) for name, count, size in rows])
    elif as_json:
        for info in held[category]:
            print_json(info)
    elif held[category]:
        columns = (Column("name", stretches=True), Column("kind"), Column("size", is_number=True))
        print_table(columns, [(info.name, info.kind, size_text(info.size)) for info in held[category]])
    if not any(held.values()):
        what = "there are no documents" if category is None else f"category {category!r} holds no documents"
        raise CommandFailed(f"{what}; below it are" if below else what, choices=below)
