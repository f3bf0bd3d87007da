"""What a person sees of a session through the command line, whichever framework wrote it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

from children import PATIENCE, SOURCE

NO_SEARCH = ("valkey:", "redis:")


class Seen(NamedTuple):
    """What four commands print."""

    ls: str
    show: str
    found: str
    markdown: str


def seen_by_a_person(url: str, session_id: str, word: str) -> Seen:
    """The session in `ls`, `show`, a `search` for a word (not on Valkey, which has none), and `export`."""
    return Seen(
        statestore(url, "ls"),
        statestore(url, "show", session_id),
        "" if url.startswith(NO_SEARCH) else statestore(url, "search", word),
        statestore(url, "export", session_id, "--format", "markdown"),
    )


def assert_readable(url: str, session_id: str, *, user: str, agent: str, word: str, event: str | None = None) -> Seen:
    """What the user and the agent said is there to be read, and found; so is an event of this kind."""
    seen = seen_by_a_person(url, session_id, word)
    assert session_id in seen.ls
    for page in (seen.show, seen.markdown):
        assert user in page
        assert agent in page
        assert event is None or event in page
        assert page.index(user) < page.index(agent)
    if not url.startswith(NO_SEARCH):
        assert word.casefold() in seen.found.casefold()
        assert session_id in seen.found
    return seen


def statestore(url: str, *arguments: str) -> str:
    """What a command that succeeds prints."""
    done = subprocess.run(
        [sys.executable, "-m", "statestore", *arguments],
        env=os.environ
        | {
            "STATESTORE_URL": url,
            "COLUMNS": "200",
            "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
