"""Writers of every kind are killed on every engine, some hundred times; the soak does it for hours."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from children import forked
from processes.contents import leftovers
from soak.grounds import LOCAL
from soak.kills.lives import PROOF
from soak.kills.openers import SQLITE_AT_REST
from soak.proof import shortly
from statestore import StateStore

ROUNDS = {"files": 3, "sqlite": 4, "postgres": 2, "valkey": 2, "valkey-cluster": 1}


@pytest.mark.parametrize("engine", PROOF.engines)
def test_what_was_acknowledged_survives_kill_9_and_nothing_is_there_in_part(engine: str) -> None:
    counts = shortly(PROOF, engine, rounds=ROUNDS[engine])
    assert counts["kills"] >= 6 * ROUNDS[engine]
    assert counts["acknowledged"] > counts["kills"]


@pytest.mark.parametrize("engine", LOCAL)
def test_whoever_dies_while_a_store_is_made_leaves_nothing_that_does_not_belong_to_it(
    engine: str, tmp_path: Path
) -> None:
    """Killed before each call to the system that opening a new store makes."""
    for nth in range(1, 200):
        place = tmp_path / str(nth)
        place.mkdir()
        path = place / ("state.db" if engine == "sqlite" else "state")
        ended = forked(lambda _, nth=nth, path=path: _die_in_opening(path, nth))
        assert not ended.error, ended.error
        with StateStore.open(path, durability="relaxed") as store:
            store.get_or_create_session("alice", "one")
            assert store.check() == []
        if engine == "sqlite":
            assert {found.name for found in place.iterdir()} == SQLITE_AT_REST
        else:
            assert leftovers(path) == []
        if not ended.was_killed:
            assert nth > 5, "nothing was tested"
            return
    pytest.fail("opening never came to its end")


def _die_in_opening(path: Path, nth: int) -> None:
    calls = 0

    def count(_frame: object, event: str, called: Any) -> None:
        nonlocal calls
        if event == "c_call" and called.__module__ == "posix":
            calls += 1
            if calls == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    StateStore.open(path, durability="relaxed")
