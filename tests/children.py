"""Other processes: several that start at the same moment, forked ones that may die, interpreters of their own."""

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

SOURCE = Path(statestore.__file__).parent.parent
PATIENCE = 60.0
"""Seconds after which a process that was to end is taken for hanging."""

Tell = Callable[[str], None]


def together(start_method: str, work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run ``work`` in one process for each set of arguments, all let go at one moment; what each returned."""
    return together_each(start_method, [(work, own) for own in arguments])


def together_each(start_method: str, works: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
    """The same, with work of its own for each process."""
    context: Any = multiprocessing.get_context(start_method)
    barrier = context.Barrier(len(works))
    pipes: list[Any] = []
    processes: list[Any] = []
    for work, own in works:
        reading, writing = context.Pipe(duplex=False)
        process = context.Process(target=_contestant, args=(barrier, writing, work, own), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of forks beside any thread
            process.start()
        writing.close()
        pipes.append(reading)
        processes.append(process)
    try:
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
    finally:
        for process in processes:
            if process.is_alive():
                process.kill()
                process.join()


def _contestant(barrier: Any, pipe: Any, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        barrier.wait(PATIENCE)
        pipe.send(("done", work(*arguments)))
    except BaseException:  # noqa: BLE001 - told to the test, which fails with it
        pipe.send(("failed", traceback.format_exc()))
    pipe.close()


class Ended(NamedTuple):
    """How a forked process ended: what it told, what it died of, and the error that ended its work."""

    told: list[str]
    signal: int
    error: str

    @property
    def was_killed(self) -> bool:
        """Whether it was killed, and did not come to its end."""
        return self.signal == signal.SIGKILL


class Child:
    """A forked process that runs ``work(tell)``. It never returns into the test."""

    def __init__(self, work: Callable[[Tell], object]) -> None:
        self._reading, writing = os.pipe()
        self._seen = b""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            os.close(self._reading)
            _run_and_exit(work, writing)
        os.close(writing)

    def wait_for_words(self, count: int = 1) -> list[str]:
        """Wait until it has told this much."""
        deadline = time.monotonic() + PATIENCE
        while self._seen.count(b"\n") < count:
            piece = self._read(max(deadline - time.monotonic(), 0))
            assert piece, f"the process ended, or hangs, before it told enough: {self._seen!r}"
        return self._seen.decode().splitlines()[:count]

    def kill(self) -> None:
        """Kill it, whatever it is doing."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Have it stand still, whatever it is doing, and wait until it does."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Let it go on after a `stop`."""
        os.kill(self.pid, signal.SIGCONT)

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


def _run_and_exit(work: Callable[[Tell], object], writing: int) -> NoReturn:
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


def forked(work: Callable[[Tell], object], patience: float = PATIENCE) -> Ended:
    """Fork, let the child work, wait for its end."""
    return Child(work).ended(patience)


def in_child(work: Callable[[Tell], object], patience: float = PATIENCE) -> list[str]:
    """Fork, let the child work, wait for its end; what it told. Its error is the test's."""
    ended = forked(work, patience)
    assert not ended.error, ended.error
    assert not ended.signal
    return ended.told


def fresh_interpreter(script: Path, *arguments: str, patience: float = PATIENCE) -> Any:
    """What a script prints, as JSON, when an interpreter of its own runs it."""
    places = [str(SOURCE), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=patience,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
