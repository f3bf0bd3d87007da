"""``statestore delete``: move sessions to the trash."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import CorruptData, StateStore
from statestore.cli.failures import NOT_FOUND, UNUSABLE, CommandFailed
from statestore.cli.naming import find_session
from statestore.cli.opening import writing
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore delete 3f2a 77b0",
    "statestore delete trip --forever",
)
TRASH_HOURS: Final = 7 * 24
Forever = Annotated[bool, typer.Option("--forever", help="Not into the trash: at once, for good.")]


def delete(
    ctx: typer.Context,
    sessions: Annotated[list[str], typer.Argument(metavar="ID", help="Their ids, or how these begin.")],
    forever: Forever = False,
    as_json: Json = False,
) -> None:
    """Delete sessions. They can be restored for 7 days, unless --forever.

    If one of the ids is wrong, nothing is deleted. A session that is damaged has to be named whole, and goes --forever.
    """
    with writing(ctx) as store:
        ids = list(dict.fromkeys(_meant(store, typed, is_forever=forever) for typed in sessions))
        gone = [each for each in ids if store.delete_session(each, trash_hours=0 if forever else TRASH_HOURS)]
    for session_id in gone:
        if as_json:
            print_json({"session_id": session_id, "deleted": True, "restorable": not forever})
        else:
            way_back = "" if forever else f": statestore restore {on_one_line(session_id)} brings it back, for 7 days"
            print_line(f"deleted {on_one_line(session_id)}{way_back}")
    if len(gone) < len(ids):
        missed = ", ".join(each for each in ids if each not in gone)
        raise CommandFailed(f"deleted by somebody else just now: {missed}", NOT_FOUND)


def _meant(store: StateStore, typed: str, *, is_forever: bool) -> str:
    """The id of the session that is meant; one that is damaged is meant only by its whole id, and forever."""
    try:
        return find_session(store, typed).id
    except CorruptData as damage:
        if is_forever:
            return typed
        raise CommandFailed(f"{damage}; only --forever deletes it", UNUSABLE) from damage
