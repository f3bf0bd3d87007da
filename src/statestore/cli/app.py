"""The typer application: the options before the command, and the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from statestore import __version__
from statestore.cli.chosen import Chosen
from statestore.cli.lazy_group import LazyGroup

app = typer.Typer(
    cls=LazyGroup,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"statestore {__version__}")
        raise typer.Exit


@app.callback()
def statestore(
    ctx: typer.Context,
    store: Annotated[str | None, typer.Option(metavar="URL")] = None,
    debug: Annotated[bool, typer.Option("--debug")] = False,
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True)] = False,
) -> None:
    """Look at, search, move and keep in order what agents left in a store."""
    ctx.obj = Chosen(store=store, debug=debug)
