"""What the library says to programs, in the words of the command line: commands and options in place of calls."""

from __future__ import annotations

from typing import Final

WORDS: Final = {
    'open the store with durability="relaxed"': "add --relaxed",
    "into_existing=True": "--into-existing",
    "mirror=True": "--mirror",
    "read_only=True": "a command that only looks",
    "leave if_version out": "leave --only-new out",
    "use save_session, append or delete_session": "use statestore new, say and delete",
    "check()": "statestore check",
    "check(repair=True)": "statestore repair",
}
"""What is looked for, in this order, and what is said instead."""


def reworded(text: str) -> str:
    """A message of the library, for somebody who types commands."""
    for theirs, ours in WORDS.items():
        text = text.replace(theirs, ours)
    return text
