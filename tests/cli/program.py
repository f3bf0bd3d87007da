"""The real program, as a process: with pipes, or in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from children import PATIENCE, SOURCE

Done = subprocess.CompletedProcess[str]
STYLE = re.compile(r"\x1b\[[0-9;]*m")
_IN_ITS_TERMINAL = """
import os, sys
os.close(os.open(os.ttyname(0), os.O_RDWR))  # the first terminal that a session's leader opens controls it
os.execv(sys.executable, [sys.executable, "-m", "statestore", *sys.argv[1:]])
"""


def environment(**changes: str) -> dict[str, str]:
    """The environment of a process, without what the machine's own would change."""
    ours = (
        "STATESTORE_URL",
        "NO_COLOR",
        "FORCE_COLOR",
        "PAGER",
        "LESS",
        "COLUMNS",
        "LINES",
        "TERM",
        "PYTHONUNBUFFERED",
    )
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return kept | {"PYTHONPATH": path, "TERM": "xterm-256color", "TZ": "UTC"} | changes


def path_that_begins_with(code: str, place: Path) -> str:
    """A PYTHONPATH by which every Python runs some code, kept in a directory, before anything else."""
    (place / "sitecustomize.py").write_text(code)
    return os.pathsep.join([str(place), environment()["PYTHONPATH"]])


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "statestore", *arguments]


def run(place: Path, *arguments: str, **changes: str) -> Done:
    """What the program prints into pipes, and how it ends."""
    return run_process(place, command(*arguments), **changes)


def run_process(place: Path, arguments: list[str], **changes: str) -> Done:
    """The same of any process."""
    return subprocess.run(
        arguments,
        cwd=place,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


def lines_of(place: Path, *arguments: str, **changes: str) -> list[str]:
    """What a command that succeeds prints."""
    done = run(place, *arguments, **changes)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def refused(place: Path, code: int, *arguments: str, **changes: str) -> str:
    """The complaint of a command that fails with this exit code, and prints nothing else."""
    done = run(place, *arguments, **changes)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


class Terminal:
    """The program in a terminal of so many columns and 24 lines."""

    def __init__(self, place: Path, columns: int, *arguments: str, **changes: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_ITS_TERMINAL, *arguments],
            cwd=place,
            env=environment(**changes),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._seen = b""

    def press(self, keys: str) -> None:
        """Press keys; ``\\x03`` is Ctrl-C."""
        os.write(self._ours, keys.encode())

    def wait_for(self, words: str) -> None:
        """Wait until these words are on the screen."""
        deadline = time.monotonic() + PATIENCE
        while words not in self.text:
            if not self._read(deadline):
                raise AssertionError(f"{words!r} did not come: {self.end()!r}")

    def end(self) -> str:
        """Wait for the end; all that was on the screen."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        self.process.wait(PATIENCE)
        os.close(self._ours)
        return self.text

    @property
    def text(self) -> str:
        return self._seen.decode(errors="replace").replace("\r\n", "\n")

    def _read(self, deadline: float) -> bool:
        if not select.select([self._ours], [], [], max(deadline - time.monotonic(), 0))[0]:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the program hangs: {self.text!r}")
        try:
            piece = os.read(self._ours, 1 << 16)
        except OSError:  # how Linux tells that nobody has the terminal open any more
            return False
        self._seen += piece
        return bool(piece)


def screen(place: Path, columns: int, *arguments: str, **changes: str) -> str:
    """What a command that succeeds shows in a terminal, styles included."""
    terminal = Terminal(place, columns, *arguments, **changes)
    text = terminal.end()
    assert terminal.process.returncode == 0, text
    return text
