"""``statestore rewind``: drop the end of a session."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import Event, TimelineEntry
from statestore.cli.conversing import entry_json
from statestore.cli.naming import find_whole_session
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, WholeSession
from statestore.cli.printing import cut, is_terminal, print_json, print_line, styled, terminal_width
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore rewind trip --to 12",
    "statestore rewind trip --to 12 --json > dropped.jsonl",
)


def rewind(
    ctx: typer.Context,
    session: WholeSession,
    to: Annotated[int, typer.Option("--to", metavar="SEQ", min=0, help="The last record that stays; 0: none.")],
    as_json: Json = False,
) -> None:
    """Drop every record after a number, and print what was dropped.

    There is no way back but what is printed: statestore fork keeps a copy first. Numbers are not given out again.
    """
    with writing(ctx) as store:
        session_id = find_whole_session(store, session).id
        dropped = store.rewind_session(session_id, to=to)
    for entry in dropped:
        if as_json:
            print_json(entry_json(session_id, *entry))
        else:
            _print_entry(entry)
    if not as_json and not dropped:
        print_line(f"nothing comes after {to}")


def _print_entry(entry: TimelineEntry) -> None:
    record = entry.record
    said = bytes(record.data_json).decode() if isinstance(record, Event) else record.content
    line = on_one_line(f"{entry.seq}  {entry.kind}  {said}")
    print_line(styled("dropped  ", "dim"), cut(line, max(terminal_width() - 9, 20)) if is_terminal() else line)
