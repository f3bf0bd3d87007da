"""JSON that somebody gives to a command: all of it is kept, or none."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from statestore.cli.failures import WRONG_USAGE, CommandFailed


def json_given(text: str | bytes) -> Any:
    """The value of a JSON text; raises what ``msgspec`` does for what is none.

    Ends the command if an object has a name twice: a value keeps only one of them.
    """
    value = msgspec.json.decode(text)
    json.loads(text, object_pairs_hook=_check_names, parse_int=str)  # a text, because some are too long for Python
    return value


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    names: set[str] = set()
    for name, _ in pairs:
        if name in names:
            raise CommandFailed(
                f"the JSON has {name!r} twice in one object, and one of them would be lost", WRONG_USAGE
            )
        names.add(name)
