"""``statestore erase``: remove everything of one user."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import UserStore
from statestore.cli.asking import ask, can_ask
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, Yes
from statestore.cli.printing import counted, print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore erase bob",
    "statestore erase bob --yes --json",
)


def erase(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", help="Whose sessions go, as listings show the name.")],
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Remove all sessions of a user for good, those in the trash included.

    Documents have no user, and stay. In an SQLite file, some of the bytes stay until statestore compact; backups and
    copies are stores of their own.
    """
    if not yes and (as_json or not can_ask()):
        raise CommandFailed("there is nobody to ask: add --yes to erase", WRONG_USAGE)
    with writing(ctx) as store:
        if not yes:
            _ask(store.for_user(user))
        gone = store.erase_user(user)
    if as_json:
        print_json({"user_id": user, "erased": gone})
    elif gone:
        print_line(f"erased {counted(gone, 'session')} of {_named(user)}")
    if not gone:
        raise CommandFailed(f"there are no sessions of {_named(user)}")


def _named(user: str) -> str:
    return on_one_line(user) or "''"


def _ask(theirs: UserStore) -> None:
    kept, thrown = theirs.count_sessions(), len(theirs.list_trash())
    if kept or thrown:
        ask(f"Erase {counted(kept, 'session')} of {_named(theirs.user_id)}, and {thrown} in the trash, for good?")
