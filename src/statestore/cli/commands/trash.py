"""``statestore trash``: what can be restored."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore.cli.asking import ask, can_ask
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.moments import age_of, clock_of
from statestore.cli.naming import shown_ids
from statestore.cli.opening import reading, writing
from statestore.cli.parameters import Json, Yes
from statestore.cli.printing import Column, print_json, print_line, print_table

EXAMPLES: Final = (
    "statestore trash",
    "statestore trash --empty --yes",
)
_COLUMNS: Final = (
    Column("title", stretches=True),
    Column("id", style="dim"),
    Column("user", goes=1),
    Column("messages", is_number=True, goes=2),
    Column("deleted", is_number=True),
    Column("kept until"),
)


def trash(
    ctx: typer.Context,
    empty: Annotated[bool, typer.Option("--empty", help="Delete all of it for good.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """List the sessions that can be restored, the last deleted first."""
    if empty:
        _empty(ctx, is_sure=yes, as_json=as_json)
        return
    with reading(ctx) as store:
        found = store.list_trash()
    if as_json:
        for each in found:
            print_json({"session": each.session, "deleted_at": each.deleted_at, "until": each.until})
    elif found:
        ids = [each.session.id for each in found]
        rows = [
            (
                each.session.title or "-",
                session_id,
                each.session.user_id,
                str(each.session.message_count + each.session.response_count),
                age_of(each.deleted_at),
                clock_of(each.until),
            )
            for each, session_id in zip(found, shown_ids(ids), strict=True)
        ]
        print_table(_COLUMNS, rows)
    if not found:
        raise CommandFailed("the trash is empty")


def _empty(ctx: typer.Context, *, is_sure: bool, as_json: bool) -> None:
    if not is_sure and not can_ask():
        raise CommandFailed("there is nobody to ask: add --yes to empty the trash", WRONG_USAGE)
    with writing(ctx) as store:
        count = len(store.list_trash())
        if count and not is_sure:
            ask(f"Delete what is in the trash ({count}) for good?")
        gone = store.empty_trash()
    if as_json:
        print_json({"deleted": gone})
    else:
        print_line(f"{gone} deleted for good")
