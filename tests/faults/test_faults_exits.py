"""An interpreter ends, and nobody closed the store: no hang, no traceback, and all that was acknowledged is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from children import PATIENCE, SOURCE
from soak.grounds import fresh
from statestore import StateStore

SCRIPT = Path(__file__).with_name("exit_scenes.py")
SCENES = {
    "left open": ("nobody_closed_it", "a_prune_is_pending", "somebody_watches", "handlers_write", "daemons_write"),
    "in the middle": ("it_exits_in_a_batch", "a_pool_is_at_work", "it_is_terminated", "it_is_interrupted"),
    "loops": (
        *("a_loop_ends_while_tasks_write", "a_loop_ends_while_tasks_watch_and_prune"),
        *("a_loop_is_interrupted", "a_loop_runs_in_a_handler"),
    ),
}


class Ended(NamedTuple):
    """How an interpreter ended, and what it left."""

    told: set[int]
    stored: set[int]
    complaint: str
    code: int


def _ended(scenes: tuple[str, ...], engine: str) -> dict[str, Ended]:
    """Run some scenes, each on a store of its own, all at once."""
    ended: dict[str, Ended] = {}
    with ExitStack() as stack:
        running: dict[str, tuple[subprocess.Popen[str], str]] = {}
        for scene in scenes:
            target = stack.enter_context(fresh(engine)).target
            path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
            process = subprocess.Popen(
                [sys.executable, str(SCRIPT), scene, target],
                env=os.environ | {"PYTHONPATH": path},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            running[scene] = (process, target)
        for scene, (process, target) in running.items():
            try:
                told, complaint = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                told, complaint = process.communicate()
                complaint += "it hangs"
            with StateStore.open(target) as store:
                stored = {entry.seq for entry in store.timeline("one")}
                assert store.list_category("notes") == []
                assert store.check() == []
            ended[scene] = Ended(set(map(int, told.split())), stored, complaint, process.returncode)
    return ended


@pytest.mark.parametrize(
    ("engine", "scenes"),
    [
        ("files", "in the middle"),
        *((engine, scenes) for engine in ("sqlite", "postgres") for scenes in SCENES),
        *(("valkey", scenes) for scenes in ("left open", "loops")),
    ],
)
def test_however_an_interpreter_ends_all_that_was_acknowledged_is_there(engine: str, scenes: str) -> None:
    for scene, (told, stored, complaint, code) in _ended(SCENES[scenes], engine).items():
        assert complaint == "", scene
        assert code == (-signal.SIGTERM if scene == "it_is_terminated" else 0), scene
        assert told, scene
        assert told <= stored, scene


@pytest.mark.parametrize("engine", ["postgres", "valkey"])
def test_a_store_that_can_no_longer_be_opened_at_the_exit_says_so(engine: str) -> None:
    """Their drivers need a pool of threads, which Python does not make any more by then."""
    code = (
        "import atexit, sys; from statestore import *\n"
        "def late():\n"
        "    try: StateStore.open(sys.argv[1])\n"
        "    except StoreUnavailable as error: print(error)\n"
        "atexit.register(late)"
    )
    with fresh(engine) as ground:
        target = ground.target.replace("127.0.0.1", "localhost")
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-c", code, target],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        assert "shutdown" in done.stdout
        assert done.stderr == ""
