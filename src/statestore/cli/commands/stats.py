"""``statestore stats``: how much there is, whose it is, and when it came."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Final

import typer

from statestore import SessionSummary
from statestore.cli.failures import no_sessions
from statestore.cli.moments import age_of
from statestore.cli.naming import shown_ids
from statestore.cli.opening import reading
from statestore.cli.parameters import Json, Project, User
from statestore.cli.printing import (
    Column,
    bar,
    counted,
    is_terminal,
    print_json,
    print_line,
    print_table,
    size_text,
    styled,
)
from statestore.cli.totals import Amount, all_sessions, totals_of

EXAMPLES: Final = (
    "statestore stats --top 3",
    "statestore stats --user alice --json | jq .total.bytes",
)
_EXTREMES: Final = (
    Column("title", stretches=True),
    Column("id", style="dim"),
    Column("user", goes=1),
    Column("age", is_number=True),
    Column("size", is_number=True),
)


def stats(
    ctx: typer.Context,
    user: User = None,
    project: Project = None,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="How many rows of each kind.")] = 7,
    as_json: Json = False,
) -> None:
    """Count sessions, messages and bytes: by user, by project, by day.

    A day (UTC) is that of a session's last change. The largest and the oldest sessions follow. --json has all rows.
    """
    with reading(ctx) as store:
        totals = totals_of(all_sessions(store, user_id=user, project_id=project), top)
    if not totals.total.sessions:
        raise no_sessions(store.url, is_narrowed=(user, project) != (None, None))
    if as_json:
        print_json(totals)
        return
    print_line(_told(totals.total))
    days = dict(islice(totals.by_day.items(), max(len(totals.by_day) - top, 0), None))
    for name, amounts in (("user", totals.by_user), ("project", totals.by_project), ("day", days)):
        if amounts:
            _print_amounts(name, amounts, top)
    for title, summaries in (("largest", totals.largest), ("oldest", totals.oldest)):
        _print_extremes(title, summaries)


def _told(total: Amount) -> str:
    things = (counted(total.sessions, "session"), counted(total.messages, "message"), counted(total.events, "event"))
    return f"{', '.join(things)}, {size_text(total.bytes)} of records"


def _print_amounts(name: str, amounts: dict[str, Amount], top: int) -> None:
    most = max(amount.bytes for amount in amounts.values())
    columns = [
        Column(name, stretches=True),
        Column("sessions", is_number=True, goes=2),
        Column("messages", is_number=True, goes=1),
        Column("size", is_number=True),
    ]
    rows = [
        [key, f"{amount.sessions:,}", f"{amount.messages:,}", size_text(amount.bytes)]
        for key, amount in islice(amounts.items(), top)
    ]
    if is_terminal():
        columns.append(Column("", goes=3, style="user"))
        for row, amount in zip(rows, amounts.values(), strict=False):
            row.append(bar(amount.bytes / most if most else 0))
    print_line()
    print_table(columns, rows)
    if len(amounts) > top:
        print_line(styled(f"… and {len(amounts) - top:,} more", "dim"))


def _print_extremes(title: str, summaries: list[SessionSummary]) -> None:
    ids = [summary.id for summary in summaries]
    shown = shown_ids(ids)
    print_line()
    print_line(f"the {title}")
    print_table(
        _EXTREMES,
        [
            (summary.title or "-", session_id, summary.user_id, age_of(summary.updated_at), size_text(summary.size))
            for summary, session_id in zip(summaries, shown, strict=True)
        ],
    )
