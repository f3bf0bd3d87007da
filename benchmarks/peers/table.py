"""The table of a run: cells in plain text, and the terminal's view of them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from benchmarks.peers.contests import LENGTHS
from benchmarks.peers.measuring import NEWEST, ROUNDS, SESSIONS, TASKS, Figures, Result, Run

COLUMNS = (
    "store",
    "version",
    "durability",
    f"append at {LENGTHS[0]:,} (us)",
    f"append at {LENGTHS[-1]:,} (us)",
    f"load {LENGTHS[-1]:,} (ms)",
    f"{TASKS} tasks (exchanges/s)",
    f"newest {NEWEST} of {SESSIONS:,} (ms)",
)
WORDS = 3
"""So many columns hold words, the others figures."""


def cells(store: Figures) -> list[str]:
    """One row, in the order of the columns. A dash: not offered. ``error``: the reason is below the table."""
    first, last = (store.append.get(length) for length in (LENGTHS[0], LENGTHS[-1]))
    failed = "*" if store.failed_tasks else ""
    return [
        store.name,
        store.version or "-",
        store.durability or "-",
        _cell(store, f"append {LENGTHS[0]}", first and f"{first * 1e6:,.0f}"),
        _cell(store, f"append {LENGTHS[-1]}", last and f"{last * 1e6:,.0f}"),
        _cell(store, "load", store.load and f"{store.load * 1e3:,.1f}"),
        _cell(store, "64 tasks", store.exchanges_per_second and f"{store.exchanges_per_second:,.0f}{failed}"),
        _cell(store, "list", store.list_newest and f"{store.list_newest * 1e3:,.2f}"),
    ]


def _cell(store: Figures, work: str, figure: str | float | None) -> str:
    if {work, "import", "open"} & store.errors.keys():
        return "error"
    return str(figure) if figure else "-"


def remarks(contest: Result) -> list[str]:
    """What the table has marked: tasks that failed, and why something is missing."""
    marked = [
        f"* {store.name}: {store.failed_tasks} of {TASKS * (ROUNDS + 1)} tasks failed,"
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
        for number, column in enumerate(COLUMNS):
            view.add_column(column, justify="left" if number < WORDS else "right", no_wrap=number < WORDS)
        for store in contest.stores:
            is_ours = store.name.startswith("statestore")
            view.add_row(*cells(store), style="bold" if is_ours else "red" if store.errors else None)
        console.print(view)
        for remark in remarks(contest):
            console.print(remark, markup=False, highlight=False)
