"""``statestore check``: what is wrong with a store, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import typer
from msgspec.structs import replace

from statestore import Problem, StateStore
from statestore.cli.failures import NOT_FOUND
from statestore.cli.opening import reading
from statestore.cli.parameters import Json, Relaxed
from statestore.cli.printing import counted, print_json, print_line, styled
from statestore.cli.rewording import reworded
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore check",
    "statestore check --json || echo damaged",
)


def check(ctx: typer.Context, relaxed: Relaxed = False, as_json: Json = False) -> None:
    """Look at everything that is stored; the exit code is 1 if anything is wrong. Nothing is changed."""
    with reading(ctx, relaxed=relaxed) as store:
        tell_problems(store, store.check(), as_json=as_json)


def tell_problems(store: StateStore, problems: Sequence[Problem], *, as_json: bool) -> None:
    """Print what was found in a store; ends the command with 1 if anything is still wrong."""
    for found in problems:
        problem = replace(found, what=reworded(found.what), advice=reworded(found.advice))
        if as_json:
            print_json(problem)
        else:
            _print_problem(problem)
    if any(not problem.is_repaired for problem in problems):
        raise typer.Exit(NOT_FOUND)
    if not as_json:
        looked_at = counted(store.count_sessions(), "session")
        print_line(styled("nothing is wrong", "good"), f": {looked_at} and all documents were looked at")


def _print_problem(problem: Problem) -> None:
    state = styled("repaired", "good") if problem.is_repaired else styled("wrong", "bad")
    print_line(f"{state}  {on_one_line(problem.where)}: {on_one_line(problem.what)}")
    print_line(styled(f"    {on_one_line(problem.advice)}", "dim"))
