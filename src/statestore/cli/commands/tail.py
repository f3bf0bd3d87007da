"""``statestore tail``: what was said last, and what is being said now."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from typing import Annotated, Final, NamedTuple

import typer

from statestore import CorruptData, Event, Notice, Record, SessionNotFound, StateStore
from statestore.cli.conversing import entry_json, folded, style_of
from statestore.cli.failures import CommandFailed, complain
from statestore.cli.moments import clock_of
from statestore.cli.naming import find_session, shown_ids
from statestore.cli.opening import reading
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line, styled, width_of
from statestore.visible import on_its_lines, on_one_line

EXAMPLES: Final = (
    "statestore tail -f",
    "statestore tail trip -n 3 --follow --json",
)
_INDENT: Final = "    "


class Said(NamedTuple):
    """A record, and where it is."""

    session_id: str
    seq: int | None
    kind: str
    record: Record


def tail(
    ctx: typer.Context,
    session: Annotated[str | None, typer.Argument(metavar="ID", help="A session's id, or its beginning.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on, with what any process adds.")] = False,
    count: Annotated[int, typer.Option("--lines", "-n", metavar="N", min=0, help="How many records.")] = 10,
    as_json: Json = False,
) -> None:
    """Show what was said last, in one session or in all of them.

    With -f, whatever is added is shown as it is added, whichever process adds it; Ctrl-C ends it.
    """
    with reading(ctx) as store:
        session_id = None if session is None else find_session(store, session).id
        cursor = store.change_cursor() if follow else ""
        shown = _last(store, session_id, count)
        for said in shown:
            _print(said, as_json=as_json)
        if follow:
            sys.stdout.flush()
            _follow(store, session_id, cursor, {(said.session_id, said.seq) for said in shown}, as_json=as_json)
    if not shown and count:
        raise CommandFailed("nothing was said yet")


def _last(store: StateStore, session_id: str | None, count: int) -> list[Said]:
    """The newest records of one session, or of all that can be read, oldest first."""
    if not count:
        return []
    if session_id is not None:
        return [Said(session_id, *entry) for entry in store.timeline(session_id, limit=count)]
    found: list[tuple[datetime, Said]] = []
    for summary in store.list_sessions(limit=count):
        try:
            found += _in_time(_last(store, summary.id, count))
        except (CorruptData, SessionNotFound) as error:  # damaged, or deleted just now
            complain(f"warning: session {summary.id} is left out: {error}")
    return [said for _, said in sorted(found, key=itemgetter(0))[-count:]]


def _in_time(session: Iterable[Said]) -> Iterator[tuple[datetime, Said]]:
    """Records of one session, each with a moment that is none before theirs: they stay in their order."""
    latest: datetime | None = None
    for said in session:
        moment = said.record.timestamp
        latest = moment if latest is None else max(latest, moment)
        yield latest, said


def _follow(
    store: StateStore, session_id: str | None, cursor: str, seen: set[tuple[str, int | None]], *, as_json: bool
) -> None:
    for notice in store.watch(session_id, after=cursor):
        if (notice.session_id, notice.seq) in seen and notice.what == "record":
            continue
        if notice.record is not None and notice.kind is not None:
            _print(Said(notice.session_id, notice.seq, notice.kind, notice.record), as_json=as_json)
        elif notice.what != "session":
            if notice.what == "deleted":  # another one with its id, or itself out of the trash, has these numbers anew
                seen = {place for place in seen if place[0] != notice.session_id}
            _print_removal(notice, as_json=as_json)
        sys.stdout.flush()


def _print(said: Said, *, as_json: bool) -> None:
    if as_json:
        print_json(entry_json(*said))
        return
    style = style_of(said.kind)
    (session_id,) = shown_ids([said.session_id])
    place = on_one_line(f"{clock_of(said.record.timestamp)}  {session_id} #{said.seq} ")
    who = on_one_line(said.kind)
    if isinstance(said.record, Event):
        data = folded(said.record, beside=width_of(place) + width_of(who) + 2)
        print_line(styled(place, "dim"), styled(f"{who}  {data}", style))
    else:
        lines = on_its_lines(said.record.content).split("\n")
        print_line(styled(place, "dim"), styled(who, style), *(f"\n{_INDENT}{line}".rstrip() for line in lines))


def _print_removal(notice: Notice, *, as_json: bool) -> None:
    if as_json:
        print_json({"session_id": notice.session_id, "what": notice.what, "seq": notice.seq})
    elif notice.what == "deleted":
        print_line(styled(f"session {on_one_line(notice.session_id)} was deleted", "bad"))
    else:
        print_line(styled(f"session {on_one_line(notice.session_id)} was rewound to #{notice.seq}", "bad"))
