"""``statestore new``: begin a session."""

from __future__ import annotations

from getpass import getuser
from typing import Annotated, Final

import typer

from statestore import Session
from statestore.cli.opening import writing
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore new trip --user alice --title 'A day on the island'",
    "id=$(statestore new) && statestore say $id 'Which ferry?'",
)


def new(
    ctx: typer.Context,
    session: Annotated[str | None, typer.Argument(metavar="ID", help="Its id; else, a random one.")] = None,
    user: Annotated[str | None, typer.Option("--user", metavar="USER", help="Whose it is; else, yours.")] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What listings call it.")] = None,
    project: Annotated[str | None, typer.Option("--project", metavar="ID", help="The project it belongs to.")] = None,
    as_json: Json = False,
) -> None:
    """Begin a session, and print its id. A store that is not there yet is made."""
    made = Session(getuser() if user is None else user, session)
    made.project_id = project
    if title is not None:
        made.set_metadata("title", title)
    with writing(ctx, create=True) as store:
        store.save_session(made)
        where = store.url
    if as_json:
        print_json({"session_id": str(made.id), "user_id": made.user_id, "store": where})
    else:
        print_line(on_one_line(made.id))
