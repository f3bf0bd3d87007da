"""The tables of the adapters: a row for each of a framework's own stores with ours beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.adapters import growth
from benchmarks.peers.figures import Effort, Figures, Result, Run

_STEPS = {"append": ("append",), "load": ("append", "load"), "listing": ("list",)}
"""What must go well for a figure to be there, as errors name it: a session is filled before it is loaded."""


class Row(NamedTuple):
    """A framework's store, and ours."""

    result: Result
    theirs: Figures
    ours: Figures


class View(NamedTuple):
    """A way to look at the rows: which words stand before the figures, and how theirs and ours make a figure."""

    title: str
    words: tuple[str, ...]
    shown: Callable[[float, float], str]


RATIOS = View(
    "ours / theirs, below 1 is faster",
    ("store", "version", "theirs", "ours"),
    lambda theirs, ours: f"{ours / theirs:.2f}",
)
MILLISECONDS = View(
    "theirs / ours, in milliseconds",
    ("store", "ours"),
    lambda theirs, ours: f"{theirs * 1e3:,.1f} / {ours * 1e3:,.1f}",
)


def rows(run: Run) -> list[Row]:
    """Each of a framework's own stores beside each of ours; one row for a framework that is not there."""
    found: list[Row] = []
    for result in run.adapters:
        if any("import" in store.errors for store in result.stores):
            found.append(Row(result, result.stores[0], result.stores[-1]))
            continue
        ours = [store for store in result.stores if store.is_ours]
        found += [Row(result, their, our) for their in result.stores if not their.is_ours for our in ours]
    return found


def columns(view: View, effort: Effort) -> list[str]:
    """The heads, for so much work."""
    names = {"append": "append at", "load": "load", "listing": "list"}
    return [*view.words, *(f"{names[work]} {number:,}" for work, number in _works(effort))]


def cells(view: View, row: Row) -> list[str]:
    """One row, in the order of the columns. A dash: not both offer it. ``error``: the reason is below the table."""
    missing = row.theirs.errors.get("import")
    words = {
        "store": row.result.engine if missing else row.theirs.name,
        "version": row.theirs.version or "-",
        "theirs": f"cannot be imported: {missing}" if missing else flushing(row.theirs),
        "ours": flushing(row.ours),
    }
    figures = (_cell(view, row, work, number) for work, number in _works(row.result.effort))
    return [*(words[word] for word in view.words), *figures]


def _works(effort: Effort) -> list[tuple[str, int]]:
    """What is measured, by the name that figures have for it, and at which number."""
    works = (("append", effort.lengths), ("load", effort.loaded), ("listing", effort.listed))
    return [(work, number) for work, numbers in works for number in numbers]


def _cell(view: View, row: Row, work: str, number: int) -> str:
    theirs, ours = (getattr(store, work).get(number) for store in (row.theirs, row.ours))
    if theirs and ours:
        return view.shown(theirs, ours)
    failed = row.theirs.errors.keys() | row.ours.errors.keys()
    return "error" if failed & {"open", *_STEPS[work], *(f"{step} {number}" for step in _STEPS[work])} else "-"


def flushing(store: Figures) -> str:
    """Whether what it has stored is flushed to the disk, and how it says so."""
    if store.durability.endswith((", FULL", ", EXTRA")):
        return f"flushed ({store.durability})"
    if store.durability.endswith((", NORMAL", ", OFF")):
        return f"not flushed ({store.durability})"
    return store.durability or "-"


def remarks(run: Run) -> list[str]:
    """Why something is missing."""
    return [
        f"error: {result.engine}, {store.name}, {work}: {reason}"
        for result in (*run.adapters, *([run.growth] if run.growth else []))
        for store in result.stores
        for work, reason in store.errors.items()
        if work != "import"
    ]


def show(run: Run, console: Console) -> None:
    """Print them."""
    if not run.adapters:
        return
    for view in (RATIOS, MILLISECONDS):
        printed = Table(title=f"adapters on SQLite beside the frameworks' own stores: {view.title} ({run.machine})")
        for number, column in enumerate(columns(view, run.adapters[0].effort)):
            printed.add_column(column, justify="left" if number < len(view.words) else "right")
        for row in rows(run):
            printed.add_row(*cells(view, row), style="red" if row.theirs.errors or row.ours.errors else None)
        console.print(printed)
    if run.growth:
        printed = Table(*growth.columns(run.growth), title="LangGraph: one thread")
        for line in growth.rows(run.growth):
            printed.add_row(*line)
        console.print(printed)
    for remark in remarks(run):
        console.print(remark, markup=False, highlight=False)
