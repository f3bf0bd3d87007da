"""``statestore say``: add what the user said. How a text is given to a command that adds one."""

from __future__ import annotations

import sys
from typing import Final

import typer

from statestore import Record, UserMessage
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.naming import find_session_for_sure
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, Key, SureSession, Text
from statestore.cli.printing import print_json, print_line

EXAMPLES: Final = (
    "statestore say trip 'Which ferry arrives before noon?'",
    "git diff | statestore say trip --key commit-17",
)


def say(ctx: typer.Context, session: SureSession, text: Text = None, key: Key = None, as_json: Json = False) -> None:
    """Add what the user said to a session, and print the number it got."""
    add_record(ctx, session, UserMessage(text_given(text)), key, as_json=as_json)


def text_given(argument: str | None) -> str:
    """The text: the argument, or standard input without its last line end."""
    if argument is not None and argument != "-":
        return argument
    try:
        text = bytes_given().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise CommandFailed(
            f"standard input is not UTF-8: {error.reason} at byte {error.start}", WRONG_USAGE
        ) from error
    if not text:
        raise CommandFailed("standard input is empty: give the text as an argument, or send it there", WRONG_USAGE)
    return text


def bytes_given() -> bytes:
    """All of standard input; somebody who sits before it is told how to end."""
    if sys.stdin.isatty():
        sys.stderr.write("the text, and then Ctrl-D on a line of its own:\n")
        sys.stderr.flush()
    return sys.stdin.buffer.read()


def add_record(ctx: typer.Context, session: str, record: Record, key: str | None, *, as_json: bool) -> None:
    """Append a record to the session that is meant, and print the number it got."""
    with writing(ctx) as store:
        session_id = find_session_for_sure(store, session).id
        (seq,) = store.append(session_id, record, keys=[key])
    if as_json:
        print_json({"session_id": session_id, "seq": seq})
    else:
        print_line(str(seq))
