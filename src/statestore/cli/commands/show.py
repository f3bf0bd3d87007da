"""``statestore show``: one session as a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from statestore import Session, SessionSummary, TimelineEntry
from statestore.cli.conversing import EntryJson, conversation_piece, entry_json
from statestore.cli.failures import CommandFailed
from statestore.cli.moments import clock_of
from statestore.cli.naming import find_session
from statestore.cli.opening import reading
from statestore.cli.paging import print_paged
from statestore.cli.parameters import Json, SessionArgument
from statestore.cli.printing import counted, print_json, size_text, styled
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore show trip --last 10",
    "statestore show 3f2a --json | jq -r '.timeline[].record.content'",
    "PAGER=cat statestore show trip",
)


class Shown(msgspec.Struct):
    """A session as ``--json`` prints it."""

    session: SessionSummary
    metadata: dict[str, Any]
    timeline: list[EntryJson]


def show(
    ctx: typer.Context,
    session: SessionArgument,
    last: Annotated[int | None, typer.Option("--last", metavar="N", min=1, help="Only the newest N records.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Markdown as it was written, events whole.")] = False,
    as_json: Json = False,
) -> None:
    """Show a session as a conversation.

    On a terminal, markdown is rendered, and what is longer than the screen goes through $PAGER. Events (tool calls,
    thoughts) are one line each.
    """
    with reading(ctx) as store:
        summary = find_session(store, session)
        loaded = store.load_session(summary.id, last=last)
        if loaded is None:
            raise CommandFailed(f"session {summary.id} was deleted just now")
    if as_json:
        entries = [entry_json(summary.id, *entry) for entry in loaded.timeline]
        print_json(Shown(summary, dict(loaded.metadata), entries))
    else:
        print_paged(_pieces(summary, loaded, loaded.timeline, raw=raw))


def _pieces(summary: SessionSummary, session: Session, entries: Sequence[TimelineEntry], *, raw: bool) -> Iterator[str]:
    yield _head(summary, session)
    if entries and summary.message_count + summary.response_count + summary.event_count > len(entries):
        yield "\n" + styled(f"… what comes before #{entries[0].seq} is not shown", "dim") + "\n"
    for entry in entries:
        yield conversation_piece(entry, raw=raw)


def _head(summary: SessionSummary, session: Session) -> str:
    rows = {
        "id": summary.id,
        "user": summary.user_id,
        "project": summary.project_id,
        "forked from": summary.parent_session_id,
        "from": f"{clock_of(summary.created_at)} to {clock_of(summary.updated_at)}",
        "holds": f"{counted(summary.message_count, 'message')}, {counted(summary.response_count, 'response')}, "
        f"{counted(summary.event_count, 'event')}, {size_text(summary.size)}",
        "metadata": ", ".join(session.metadata),
    }
    lines = [styled(on_one_line(summary.title or "(no title)"), "bold")]
    lines += [f"{styled(f'{name:<12}', 'dim')}{on_one_line(value)}" for name, value in rows.items() if value]
    return "\n".join(lines) + "\n"
