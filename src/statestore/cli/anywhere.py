"""``--store`` and ``--debug`` behind the command: ``statestore ls --store state.db`` is what many type first."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.main import get_command

from statestore.cli.chosen import Chosen


def _choose_store(ctx: typer.Context, store: str | None) -> None:
    if store is not None and isinstance(ctx.obj, Chosen):
        ctx.obj = ctx.obj._replace(store=store)


def _options(
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Which store: a path or a URL.",
            expose_value=False,
            is_eager=True,
            callback=_choose_store,
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.", expose_value=False)] = False,
) -> None:
    """What every command takes besides its own; ``main`` looks for ``--debug`` itself."""


def anywhere_options(*, uses_store: bool) -> list[Any]:
    """The options for one command; without ``--store`` where it would mean nothing."""
    app = typer.Typer(add_completion=False)
    app.command()(_options)
    command: Any = get_command(app)
    return [option for option in command.params if uses_store or option.name != "store"]
