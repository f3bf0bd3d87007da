"""``statestore event``: add a tool call, a thought, anything that is neither a message nor an answer."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import typer

from statestore import Event
from statestore.cli.commands.say import add_record, text_given
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.json_given import json_given
from statestore.cli.parameters import Json, Key, SureSession

EXAMPLES: Final = (
    """statestore event trip tool_call '{"name": "timetable", "before": "12:00"}'""",
    "curl -s https://example.org/t.json | statestore event trip tool_result",
)


def event(
    ctx: typer.Context,
    session: SureSession,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="What it is: tool_call, thought, …")],
    data: Annotated[str | None, typer.Argument(metavar="JSON", help="Else, or with -, standard input.")] = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Add an event to a session, and print the number it got. Its data is any JSON value."""
    text = text_given(data)
    try:
        value = json_given(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        hint = """ (a text is JSON in quotes: '"like this"')"""
        raise CommandFailed(f"the data is not JSON: {error}{hint}", WRONG_USAGE) from error
    add_record(ctx, session, Event(kind, value), key, as_json=as_json)
