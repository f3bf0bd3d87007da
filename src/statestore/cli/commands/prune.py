"""``statestore prune``: show what is old or too many, ask, and remove it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import typer

from statestore import Doomed, PruneConfig
from statestore.cli.asking import MOST_SHOWN, agree, check_can_agree
from statestore.cli.commands.delete import TRASH_HOURS
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.moments import age_of, duration_of
from statestore.cli.naming import shown_ids
from statestore.cli.opening import reading, writing
from statestore.cli.parameters import Forever, Json, Yes
from statestore.cli.printing import Column, counted, is_terminal, print_json, print_line, print_table, size_text

EXAMPLES: Final = (
    "statestore prune --older-than 30d",
    "statestore prune --keep 500 --per-user 50 --yes",
    "statestore prune --older-than 1y --dry-run --json",
)
_COLUMNS: Final = (
    Column("title", stretches=True),
    Column("id", style="dim"),
    Column("user", goes=1),
    Column("age", is_number=True),
    Column("size", is_number=True, goes=2),
    Column("why"),
)
_HOUR: Final = 3600


def prune(
    ctx: typer.Context,
    keep: Annotated[int | None, typer.Option("--keep", metavar="N", min=1, help="The newest N stay.")] = None,
    older_than: Annotated[str | None, typer.Option("--older-than", metavar="AGE", help="Older go: 12h, 30d.")] = None,
    per_user: Annotated[
        int | None, typer.Option("--per-user", metavar="N", min=1, help="Each user's newest N.")
    ] = None,
    forever: Forever = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Show which sessions are too old or too many, ask, and delete them.

    They can be restored for 7 days, unless --forever. Without --keep, --older-than and --per-user, the newest 100 of
    the last 7 days stay. What is written to meanwhile stays as well.
    """
    config = _config(keep, older_than, per_user, forever=forever)
    check_can_agree("delete", yes=yes, dry_run=dry_run, as_json=as_json)
    if dry_run:
        with reading(ctx) as store:
            _show(store.prune_sessions(config, dry_run=True), as_json=as_json)
        return
    with writing(ctx) as store:
        doomed = store.prune_sessions(config, dry_run=True)
        _show(doomed, as_json=as_json)
        if not yes:
            agree(
                doomed,
                lambda: store.prune_sessions(config, dry_run=True),
                names=lambda doomed: {each.session.id for each in doomed},
                show=partial(_show, as_json=False),
                question=partial(_question, is_forever=forever),
            )
        pruned = store.prune_sessions(config)  # also if there is nothing: it empties the trash of what is over
    if as_json:
        print_json({"pruned": pruned, "restorable": not forever})
    elif pruned:
        way_back = "" if forever else "; statestore trash lists them, statestore restore ID brings one back, for 7 days"
        print_line(f"deleted {counted(pruned, 'session')}{way_back}")


def _config(keep: int | None, older_than: str | None, per_user: int | None, *, forever: bool) -> PruneConfig:
    trash_hours = 0 if forever else TRASH_HOURS
    if keep is None and older_than is None and per_user is None:
        return PruneConfig(trash_hours=trash_hours)
    hours = 0
    if older_than is not None:
        hours, rest = divmod(int(duration_of(older_than).total_seconds()), _HOUR)
        if rest or not hours:
            raise CommandFailed(f"--older-than counts whole hours, and {older_than!r} is none: 12h, 30d", WRONG_USAGE)
    return PruneConfig(keep or 0, hours, per_user or 0, trash_hours=trash_hours)


def _show(doomed: Sequence[Doomed], *, as_json: bool) -> None:
    if as_json:
        for each in doomed:
            print_json({"session": each.session, "reason": each.reason})
        return
    if not doomed:
        print_line("nothing is too old or too many")
        return
    shown = doomed[:MOST_SHOWN] if is_terminal() else doomed
    ids = [each.session.id for each in shown]
    rows = [
        (
            each.session.title or "-",
            session_id,
            each.session.user_id,
            age_of(each.session.updated_at),
            size_text(each.session.size),
            each.reason,
        )
        for each, session_id in zip(shown, shown_ids(ids), strict=True)
    ]
    print_table(_COLUMNS, rows)
    if len(shown) < len(doomed):
        print_line(f"… and {len(doomed) - len(shown)} more")


def _question(doomed: Sequence[Doomed], *, is_forever: bool) -> str:
    reasons = Counter(each.reason for each in doomed)
    why = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    size = size_text(sum(each.session.size for each in doomed))
    what = "for good" if is_forever else "into the trash for 7 days"
    return f"Delete {counted(len(doomed), 'session')} ({why}; {size}) {what}?"
