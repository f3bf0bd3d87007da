"""In a real terminal: narrow or wide, in colours or not, with any text, through a pager, and to the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from leftovers import TITLES
from program import STYLE, Terminal, command, environment, lines_of, run, screen
from rich.cells import cell_len

from statestore import StateStore, UserMessage

COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])(?:;[0-9;]*)?m")
SHOWS_EVERYTHING = (("ls",), ("stats",), ("search", "noted"), ("tail",), ("show", "attack"), ("show", "hebrew"))
WAITS_FOR_CTRL_C = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # one that comes before it is waited for is not missed
sys.stdin.read()
print("READY", flush=True)
signal.sigwait([signal.SIGINT])
print("INTERRUPTED", flush=True)
open("/dev/tty").readline()
"""


def unstyled(text: str) -> str:
    """What is on the screen, without its styles."""
    return STYLE.sub("", text)


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize("arguments", [("ls",), ("stats",)], ids=" ".join)
def test_a_table_fits_the_terminal(here: Path, columns: int, arguments: tuple[str, ...]) -> None:
    text = unstyled(screen(here, columns, *arguments))
    assert [line for line in text.split("\n") if cell_len(line) > columns] == []
    assert "東京の天気" in text
    assert "0aaaaaaa-1 " in text  # as much of it as tells it from the other
    assert "0aaaaaaa-10" not in text


@pytest.mark.parametrize("columns", [60, 100])
def test_the_columns_of_a_table_stand_under_each_other(here: Path, columns: int) -> None:
    head, *rows = unstyled(screen(here, columns, "ls")).rstrip().split("\n")
    ages = [row.split()[-3 if columns == 100 else -1] for row in rows]
    assert ages[0] == "now"
    end = head.rindex("age") + len("age")
    for row, age in zip(rows, ages, strict=True):
        plain = row.replace("\u2068", "").replace("\u2069", "")
        assert cell_len(plain[: plain.rindex(age) + len(age)]) == end, row


def test_a_narrow_terminal_leaves_out_what_matters_least(here: Path) -> None:
    assert "project" not in unstyled(screen(here, 60, "ls"))
    assert "project" in unstyled(screen(here, 100, "ls"))


def test_right_to_left_text_does_not_turn_what_stands_beside_it(here: Path) -> None:
    (row,) = [line for line in screen(here, 100, "ls").split("\n") if "שלום" in line]
    assert row.index("\u2068") < row.index("ש") < row.index("\u2069") < row.index("hebrew-greeting")


@pytest.mark.parametrize("arguments", SHOWS_EVERYTHING, ids=" ".join)
def test_control_sequences_in_messages_are_shown_and_not_obeyed(here: Path, arguments: tuple[str, ...]) -> None:
    for text in (unstyled(screen(here, 100, *arguments, PAGER="cat")), "\n".join(lines_of(here, *arguments))):
        assert re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text) == []
        if arguments != ("show", "hebrew"):
            assert "␛[31mred␛]0;title␇ and \\x9b2J" in text or "look ␛[31mred" in text


def test_control_sequences_are_shown_in_complaints_and_json_too(here: Path) -> None:
    done = run(here, "show", "\x1b[31mred")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    raw = run(here, "show", "attack", "--json").stdout
    assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", raw) == []
    assert "\\u001b[31mred" in raw


def test_no_color_means_no_colour(here: Path) -> None:
    for arguments in (("show", "trip"), ("stats",), ("tail",)):
        assert COLOUR.search(screen(here, 80, *arguments, PAGER="cat"))
        assert not COLOUR.search(screen(here, 80, *arguments, PAGER="cat", NO_COLOR="1"))


def test_a_terminal_without_styles_gets_none(here: Path) -> None:
    assert "\x1b" not in screen(here, 80, "show", "trip", PAGER="cat", TERM="dumb")


def test_show_renders_markdown_and_folds_events(here: Path) -> None:
    text = unstyled(screen(here, 60, "show", "trip", PAGER="cat"))
    assert " • quay 3" in text
    assert "**" not in text
    (event,) = [line for line in text.split("\n") if "tool_call" in line]
    assert event.endswith("…")
    assert cell_len(event) <= 60
    assert "**the last one**" in unstyled(screen(here, 60, "show", "trip", "--raw", PAGER="cat"))


def test_a_long_conversation_goes_through_the_pager_and_a_short_one_does_not(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.append("trip", *(UserMessage(f"Line {number}") for number in range(40)))
    pager = here / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o755)
    assert screen(here, 80, "show", "trip", PAGER=str(pager)).startswith("PAGED\n")
    assert "PAGED" not in screen(here, 80, "show", "family", PAGER=str(pager))
    assert "PAGED" not in run(here, "show", "trip", PAGER=str(pager)).stdout


def test_a_pager_that_is_left_early_is_no_error(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.append("trip", *(UserMessage("x" * 500) for _ in range(2000)))
    assert "Traceback" not in screen(here, 80, "show", "trip", "--raw", PAGER="head -n 1")


def test_cat_shows_text_and_refuses_bytes(here: Path) -> None:
    with StateStore.open(here / "state.db") as store:
        store.save_markdown("notes", "attack", TITLES["attack"])
    assert "look ␛[31mred" in screen(here, 80, "cat", "notes/attack")
    terminal = Terminal(here, 80, "cat", "images/logo")
    assert "into a file" in terminal.end()
    assert terminal.process.returncode == 2


# -- endings -----------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_it_silently_and_by_its_signal(here: Path) -> None:
    terminal = Terminal(here, 80, "tail", "-f")
    terminal.wait_for("quay 3")
    terminal.press("\x03")
    text = terminal.end()
    assert terminal.process.returncode == -signal.SIGINT
    assert "Traceback" not in text


def test_ctrl_c_while_it_is_loading_ends_it_silently_too(here: Path) -> None:
    slow = here / "slow" / "typer"
    slow.mkdir(parents=True)
    (slow / "__init__.py").write_text("import signal\nprint('loading', flush=True)\nsignal.pause()\n")
    variables = environment()
    variables["PYTHONPATH"] = os.pathsep.join([str(slow.parent), variables["PYTHONPATH"]])
    program = subprocess.Popen(
        command("ls"), cwd=here, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "loading\n"
    program.send_signal(signal.SIGINT)
    assert program.communicate(timeout=60)[1] == ""
    assert program.returncode == -signal.SIGINT


def test_ctrl_c_in_the_pager_is_the_pagers(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.append("trip", *(UserMessage(f"Line {number}") for number in range(40)))
    pager = here / "pager.py"
    pager.write_text(WAITS_FOR_CTRL_C)
    terminal = Terminal(here, 80, "show", "trip", PAGER=f"{sys.executable} {pager}")
    terminal.wait_for("READY")
    terminal.press("\x03")
    terminal.wait_for("INTERRUPTED")
    terminal.press("\n")
    assert "Traceback" not in terminal.end()
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("arguments", [("ls", "--all", "--json"), ("show", "trip"), ("stats",)], ids=" ".join)
def test_a_closed_pipe_ends_it_silently(here: Path, arguments: tuple[str, ...]) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.append("trip", *(UserMessage("x" * 1000) for _ in range(300)))
    reading, writing = os.pipe()
    os.close(reading)
    program = subprocess.run(
        command(*arguments), cwd=here, env=environment(), stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (program.returncode, program.stderr) == (-signal.SIGPIPE, b"")
