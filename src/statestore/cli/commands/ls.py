"""``statestore ls``: the newest sessions."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import SessionSummary
from statestore.cli.failures import no_sessions
from statestore.cli.moments import age_of, moment_before_now
from statestore.cli.naming import shown_ids
from statestore.cli.opening import reading
from statestore.cli.parameters import Json, Project, Since, User
from statestore.cli.printing import Column, is_terminal, print_json, print_line, print_table, size_text, styled

EXAMPLES: Final = (
    "statestore ls --user alice --since 2d",
    "statestore ls --all --json | jq -r .id",
)
_COLUMNS: Final = (
    Column("title", stretches=True),
    Column("id", style="dim"),
    Column("user", goes=1),
    Column("project", goes=3),
    Column("messages", is_number=True, goes=2),
    Column("age", is_number=True),
    Column("size", is_number=True, goes=4),
)


def ls(
    ctx: typer.Context,
    user: User = None,
    project: Project = None,
    since: Since = None,
    top_level: Annotated[bool, typer.Option("--top-level", help="Leave out what has a parent, like forks.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many at most.")] = 20,
    every: Annotated[bool, typer.Option("--all", help="All of them, however many.")] = False,
    as_json: Json = False,
) -> None:
    """List sessions, newest first.

    Messages are what user and agent said; events are not counted. Age is the time since the last change.
    """
    updated_since = None if since is None else moment_before_now(since)
    with reading(ctx) as store:
        found = store.list_sessions(
            user_id=user,
            project_id=project,
            updated_since=updated_since,
            top_level=top_level,
            limit=None if every else limit + 1,
        )
    shown = found if every else found[:limit]
    if as_json:
        for summary in shown:
            print_json(summary)
    elif shown:
        _print_sessions(shown)
        if len(found) > len(shown) and is_terminal():
            print_line(styled("… and older ones: --all, or --limit N", "dim"))
    if not shown:
        is_narrowed = (user, project, since, top_level) != (None, None, None, False)
        raise no_sessions(store.url, is_narrowed=is_narrowed)


def _print_sessions(summaries: list[SessionSummary]) -> None:
    ids = [summary.id for summary in summaries]
    print_table(
        _COLUMNS,
        [
            (
                summary.title or "-",
                session_id,
                summary.user_id,
                summary.project_id or "-",
                str(summary.message_count + summary.response_count),
                age_of(summary.updated_at),
                size_text(summary.size),
            )
            for summary, session_id in zip(summaries, shown_ids(ids), strict=True)
        ],
    )
