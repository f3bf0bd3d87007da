"""``statestore restore``: take a session out of the trash."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

import typer

from statestore import SessionConflict, StateStore
from statestore.cli.failures import NOT_FOUND, WRONG_USAGE, CommandFailed
from statestore.cli.naming import in_a_command
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, SessionArgument
from statestore.cli.printing import print_json, print_line
from statestore.names import check_session_id
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore restore 3f2a",
    "statestore trash --json | jq -r .session.id | xargs -I_ statestore restore _",
)


def restore(ctx: typer.Context, session: SessionArgument, as_json: Json = False) -> None:
    """Get a session back out of the trash, with all that it had."""
    with writing(ctx) as store:
        session_id = _find(store, session)
        try:
            restored = store.restore_session(session_id)
        except SessionConflict as conflict:  # into the trash with the other, and it is the one that is restored
            named = in_a_command(session_id)
            raise CommandFailed(
                f"another session has the id {session_id} now: statestore delete {named} --forever makes room; "
                f"to keep that one too, statestore fork {named} --id NEW before"
            ) from conflict
    if as_json:
        print_json({"session_id": str(restored.id), "user_id": restored.user_id, "records": len(restored.timeline)})
    else:
        print_line(f"restored {on_one_line(restored.id)}")


def _find(store: StateStore, typed: str) -> str:
    """The id in the trash that is meant: this one, or the only one that begins so."""
    check_session_id(typed)
    titles = {trashed.session.id: trashed.session.title or "" for trashed in store.list_trash()}
    if typed in titles:
        return typed
    found = [session_id for session_id in titles if session_id.startswith(typed)]
    if len(found) == 1:
        return found[0]
    if found:
        choices = [f"{session_id}  {titles[session_id]}" for session_id in found]
        raise CommandFailed(f"{typed!r} begins several ids in the trash: type more of it", WRONG_USAGE, choices=choices)
    near = get_close_matches(typed, titles, n=3, cutoff=0.7)
    way_on = "did you mean" if near else "statestore trash lists what is there"
    choices = [f"{session_id}  {titles[session_id]}" for session_id in near]
    raise CommandFailed(f"there is no session {typed!r} in the trash: {way_on}", NOT_FOUND, choices=choices)
