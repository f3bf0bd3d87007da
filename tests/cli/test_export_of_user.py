"""``export --user``: what is not that user's any more when its turn comes is not in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from program import command, environment

from children import PATIENCE
from statestore import Session, StateStore

MANY = 1 << 20
"""More than a pipe holds: who writes that many bytes into one waits for who reads them."""


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
def test_sessions_that_go_or_change_hands_while_it_writes_are_left_out(tmp_path: Path, form: str) -> None:
    with StateStore.open(tmp_path / "state.db", durability="relaxed") as store:
        for name, said in (("last", "mine"), ("moved", "mine"), ("gone", "mine"), ("first", "x" * MANY)):
            session = Session("alice", name)
            session.add_user_message(said)
            store.save_session(session)
        arguments = command("export", "--user", "alice", "-f", form)
        with subprocess.Popen(
            arguments, cwd=tmp_path, env=environment(), bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            begun = process.stdout.read(1)
            for name in ("gone", "moved"):
                store.delete_session(name)
            theirs = Session("bob", "moved")
            theirs.add_user_message("bobs0wn")
            store.save_session(theirs)
            rest, complaints = process.communicate(timeout=PATIENCE)
    text = (begun + rest).decode()
    assert (process.returncode, complaints) == (0, b"")
    assert "bobs0wn" not in text
    if form == "jsonl":
        ends = (json.loads(line).get("end") for line in text.splitlines())
        assert [end for end in ends if end is not None] == ["first", "last"]
