"""``show`` says that something is left out if, and only if, something is."""

from __future__ import annotations

from pathlib import Path

from program import lines_of, run

LEFT_OUT = "is not shown"


def test_show_says_that_the_beginning_is_left_out_only_if_it_is(here: Path) -> None:
    assert LEFT_OUT in run(here, "show", "trip", "--last", "2").stdout
    assert LEFT_OUT not in run(here, "show", "trip", "--last", "3").stdout
    lines_of(here, "rewind", "trip", "--to", "0")
    assert LEFT_OUT not in run(here, "show", "trip", "--last", "1").stdout
    assert lines_of(here, "say", "trip", "new") == ["4"]
    for options in ((), ("--last", "1"), ("--last", "9")):
        assert LEFT_OUT not in run(here, "show", "trip", *options).stdout
    lines_of(here, "say", "trip", "newer")
    assert "before #5 is not shown" in run(here, "show", "trip", "--last", "1").stdout
