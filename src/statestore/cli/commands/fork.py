"""``statestore fork``: branch off a session."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore.cli.naming import find_session_for_sure
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, SureSession
from statestore.cli.printing import print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore fork trip --at 12",
    "statestore fork trip --id trip-again",
)


def fork(
    ctx: typer.Context,
    session: SureSession,
    at: Annotated[int | None, typer.Option("--at", metavar="SEQ", min=0, help="The last record that it has.")] = None,
    new_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Its id; else, a random one.")] = None,
    as_json: Json = False,
) -> None:
    """Make a new session that begins as a copy of another, and print its id. The original stays as it is.

    Records are numbered: statestore show ID shows the numbers.
    """
    with writing(ctx) as store:
        branched = store.fork_session(find_session_for_sure(store, session).id, at=at, new_id=new_id)
    if as_json:
        records = len(branched.timeline)
        print_json(
            {"session_id": str(branched.id), "parent_session_id": branched.parent_session_id, "records": records}
        )
    else:
        print_line(on_one_line(branched.id))
