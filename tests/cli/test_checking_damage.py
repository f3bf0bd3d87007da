"""``check`` and ``tail`` in a store that is damaged: what can be told is told."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from program import run, run_process

DELETED_MEANWHILE = """
import sys
from statestore import StateStore
from statestore.cli.main import main

listing = StateStore.list_sessions

def listed(store, **how):
    found = listing(store, **how)
    with StateStore.open("state.db") as other:
        other.delete_session("trip")
    return found

StateStore.list_sessions = listed
sys.exit(main(["tail"]))
"""


def damage_sessions(file: Path) -> None:
    """Overwrite the pages that the table of sessions and its indexes begin with."""
    with closing(sqlite3.connect(file)) as connection:
        roots = connection.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'sessions'").fetchall()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with file.open("r+b") as pages:
        for (root,) in roots:
            pages.seek((root - 1) * size)
            pages.write(b"\xff" * size)


def test_what_is_wrong_is_printed_even_if_the_sessions_cannot_be_counted(here: Path) -> None:
    damage_sessions(here / "state.db")
    done = run(here, "check")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.startswith("wrong  ")
    assert "nothing is wrong" not in done.stdout


def test_tail_leaves_out_a_damaged_session_and_says_so(here: Path) -> None:
    with closing(sqlite3.connect(here / "state.db")) as connection:
        connection.execute("UPDATE records SET body = '{' WHERE instr(body, 'Another long id')")
        connection.commit()
    done = run(here, "tail")
    assert done.returncode == 0
    assert "Which ferry arrives before noon?" in done.stdout
    assert "warning: session 0aaaaaaa-2000-4000-8000-000000000000 is left out" in done.stderr


def test_tail_leaves_out_a_session_that_is_deleted_meanwhile(here: Path) -> None:
    done = run_process(here, [sys.executable, "-c", DELETED_MEANWHILE])
    assert done.returncode == 0
    assert "One long id" in done.stdout
    assert "warning: session trip is left out" in done.stderr
