"""Other processes: several that start at the same moment, and forked ones that may die."""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import statestore

HERE = Path(__file__).parent
SOURCE = Path(statestore.__file__).parent.parent
PATIENCE = 60.0
"""Seconds after which a process that was to end is taken for hanging."""


def together(start_method: str, work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run ``work`` in one process for each set of arguments, all let go at one moment; what each returned."""
    context: Any = multiprocessing.get_context(start_method)
    barrier = context.Barrier(len(arguments))
    pipes: list[Any] = []
    processes: list[Any] = []
    for own in arguments:
        reading, writing = context.Pipe(duplex=False)
        process = context.Process(target=_contestant, args=(barrier, writing, work, own), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside any thread
            process.start()
        writing.close()
        pipes.append(reading)
        processes.append(process)
    results: list[Any] = []
    for pipe in pipes:
        assert pipe.poll(PATIENCE), "a process hangs"
        outcome, value = pipe.recv()
        assert outcome == "done", value
        results.append(value)
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    return results


def _contestant(barrier: Any, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        barrier.wait(PATIENCE)
        pipe.send(("done", work(*arguments)))
    except BaseException:  # noqa: BLE001 - told to the test, which fails with it
        pipe.send(("failed", traceback.format_exc()))
    pipe.close()


class Ended(NamedTuple):
    """How a forked process ended: what it acknowledged, what it died of, and the error that ended its work."""

    acknowledged: list[str]
    signal: int
    error: str

    @property
    def was_killed(self) -> bool:
        """Whether it was killed, and did not come to its end."""
        return self.signal == signal.SIGKILL


class Forked:
    """A forked process that runs ``work(acknowledge)``. It never returns into the test."""

    def __init__(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self._reading, writing = os.pipe()
        self._seen = b""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reading)
            _run_and_exit(work, writing)
        os.close(writing)

    def wait_for_word(self) -> None:
        """Wait until it has acknowledged something."""
        while b"\n" not in self._seen:
            piece = self._read(PATIENCE)
            assert piece, "the process ended before it acknowledged anything"

    def kill(self) -> None:
        """Kill it, whatever it is doing."""
        os.kill(self.pid, signal.SIGKILL)

    def ended(self, patience: float = PATIENCE) -> Ended:
        """Wait for its end; one that hangs is killed, and that fails the test."""
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0 and self._read(left):
            pass
        is_hanging = time.monotonic() >= deadline
        if is_hanging:
            self.kill()
        _, status = os.waitpid(self.pid, 0)
        os.close(self._reading)
        assert not is_hanging, "the process hangs"
        *lines, _unfinished = self._seen.decode().split("\n")
        errors = [json.loads(line[1:]) for line in lines if line.startswith("!")]
        return Ended([line for line in lines if not line.startswith("!")], status & 0x7F, "".join(errors))

    def _read(self, patience: float) -> bytes:
        if not select.select([self._reading], [], [], patience)[0]:
            return b""
        piece = os.read(self._reading, 1 << 16)
        self._seen += piece
        return piece


def _run_and_exit(work: Callable[[Callable[[str], None]], None], writing: int) -> NoReturn:
    write, leave = os.write, os._exit  # the work may put others in their place
    try:
        work(lambda word: _write_all(write, writing, f"{word}\n"))
    except BaseException:  # noqa: BLE001 - told to the test
        _write_all(write, writing, f"!{json.dumps(traceback.format_exc())}\n")
    finally:
        leave(0)


def _write_all(write: Callable[[int, bytes], int], fd: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[write(fd, data) :]


def forked(work: Callable[[Callable[[str], None]], None], patience: float = PATIENCE) -> Ended:
    """Fork, let the child work, wait for its end."""
    return Forked(work).ended(patience)


def fresh_interpreter(script: str, *arguments: str, patience: float = PATIENCE) -> Any:
    """What a script of this directory prints, as JSON, when an interpreter of its own runs it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
