"""The table of a contest: cells in plain text, and the terminal's view of them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.peers.crowding import TASKS, WORK
from benchmarks.peers.figures import Effort, Figures, Result, Run

WORDS = 3
"""So many columns hold words, the others figures."""


def columns(effort: Effort) -> list[str]:
    """The heads, for so much work."""
    return [
        "store",
        "version",
        "durability",
        f"append at {effort.lengths[0]:,} (us)",
        f"append at {effort.lengths[-1]:,} (us)",
        f"load {effort.loaded[-1]:,} (ms)",
        f"{TASKS} tasks (exchanges/s)",
        f"newest {effort.newest} of {effort.listed[-1]:,} (ms)",
    ]


def cells(store: Figures, effort: Effort) -> list[str]:
    """One row, in the order of the columns. A dash: not offered. ``error``: the reason is below the table."""
    ends = effort.lengths[0], effort.lengths[-1]
    loaded, listed = effort.loaded[-1], effort.listed[-1]
    load, listing = store.load.get(loaded), store.listing.get(listed)
    failed = "*" if store.failed_tasks else ""
    return [
        store.name,
        store.version or "-",
        store.durability or "-",
        *(_cell(store, {f"append {end}"}, (cost := store.append.get(end)) and f"{cost * 1e6:,.0f}") for end in ends),
        _cell(store, {f"append {loaded}", f"load {loaded}"}, load and f"{load * 1e3:,.1f}"),
        _cell(store, {WORK}, store.exchanges_per_second and f"{store.exchanges_per_second:,.0f}{failed}"),
        _cell(store, {"list", f"list {listed}"}, listing and f"{listing * 1e3:,.2f}"),
    ]


def _cell(store: Figures, works: set[str], figure: str | float | None) -> str:
    if figure:
        return str(figure)
    return "error" if (works | {"import", "open"}) & store.errors.keys() else "-"


def remarks(contest: Result) -> list[str]:
    """What the table has marked: tasks that failed, and why something is missing."""
    marked = [
        f"* {store.name}: {store.failed_tasks} of {TASKS * (contest.effort.rounds + 1)} tasks failed,"
        f" the first with {store.failed_because}"
        for store in contest.stores
        if store.failed_tasks
    ]
    return marked + [
        f"error: {store.name}, {work}: {reason}" for store in contest.stores for work, reason in store.errors.items()
    ]


def show(run: Run, console: Console) -> None:
    """Print it, a table for each contest."""
    for contest in run.contests:
        view = Table(title=f"{contest.engine}: the same work on each, turn by turn ({run.machine})")
        for number, column in enumerate(columns(contest.effort)):
            view.add_column(column, justify="left" if number < WORDS else "right", no_wrap=number < WORDS)
        for store in contest.stores:
            view.add_row(
                *cells(store, contest.effort), style="bold" if store.is_ours else "red" if store.errors else None
            )
        console.print(view)
        for remark in remarks(contest):
            console.print(remark, markup=False, highlight=False)
