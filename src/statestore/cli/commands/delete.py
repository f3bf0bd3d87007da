"""``statestore delete``: move sessions to the trash."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import CorruptData, StateStore
from statestore.cli.failures import NOT_FOUND, UNUSABLE, CommandFailed
from statestore.cli.naming import find_session_for_sure, find_whole_session, in_a_command
from statestore.cli.opening import writing
from statestore.cli.parameters import Forever, Json
from statestore.cli.printing import print_json, print_line
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore delete 3f2a 77b0",
    "statestore delete trip --forever",
)
TRASH_HOURS: Final = 7 * 24


def delete(
    ctx: typer.Context,
    sessions: Annotated[
        list[str],
        typer.Argument(metavar="ID", help="Their ids. On a terminal, how these begin, too, but for --forever."),
    ],
    forever: Forever = False,
    as_json: Json = False,
) -> None:
    """Delete sessions. They can be restored for 7 days, unless --forever.

    If one of the ids is wrong, nothing is deleted. A session that is damaged goes only --forever.
    """
    missed: list[str] = []
    with writing(ctx) as store:
        ids = [_found(store, typed, is_forever=forever) for typed in sessions]
        for session_id in dict.fromkeys(ids):
            if _is_deleted(store, session_id, is_forever=forever):
                _tell(session_id, is_forever=forever, as_json=as_json)
            else:
                missed.append(session_id)
    if missed:
        raise CommandFailed(f"deleted by somebody else just now: {', '.join(missed)}", NOT_FOUND)


def _found(store: StateStore, typed: str, *, is_forever: bool) -> str:
    """The id of the session that is meant; one that cannot be read is meant only by its whole id, and forever."""
    try:
        return (find_whole_session if is_forever else find_session_for_sure)(store, typed).id
    except CorruptData as damage:
        if is_forever:
            return typed
        raise _damaged(damage) from damage


def _is_deleted(store: StateStore, session_id: str, *, is_forever: bool) -> bool:
    try:
        return store.delete_session(session_id, trash_hours=0 if is_forever else TRASH_HOURS)
    except CorruptData as damage:
        if is_forever:
            raise
        raise _damaged(damage) from damage


def _damaged(damage: CorruptData) -> CommandFailed:
    return CommandFailed(f"{damage}; only --forever deletes it", UNUSABLE)


def _tell(session_id: str, *, is_forever: bool, as_json: bool) -> None:
    if as_json:
        print_json({"session_id": session_id, "deleted": True, "restorable": not is_forever})
        return
    way_back = "" if is_forever else f": statestore restore {in_a_command(session_id)} brings it back, for 7 days"
    print_line(f"deleted {on_one_line(session_id)}{way_back}")
