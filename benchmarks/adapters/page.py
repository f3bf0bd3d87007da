"""The section of the page that is about adapters."""

from __future__ import annotations

from benchmarks.adapters import growth
from benchmarks.adapters.table import MILLISECONDS, RATIOS, View, cells, columns, remarks, rows
from benchmarks.peers.figures import Effort, Figures, Result, Run
from benchmarks.peers.markdown import figures_table

COMMAND = "python -m benchmarks.adapters [NAME…]"
TITLE = "Adapters beside the frameworks' own stores"


def section(run: Run) -> list[str]:
    """The tables, and what they show; nothing if adapters were not measured."""
    if not run.adapters:
        return []
    effort = run.adapters[0].effort
    return [
        f"## {TITLE}",
        "Each adapter on one SQLite file, and what its framework ships, in turn, through the framework's own contract."
        " The figures are ours / theirs: below 1, ours is faster. A dash: not both offer that. Under *theirs* and"
        " *ours* stands whether what was stored is flushed to the disk: where theirs are files that are not, there is a"
        ' second row with `durability="relaxed"`, which promises what they do.',
        _table(RATIOS, run, effort),
        "\n".join(_work(effort)),
        "In milliseconds, theirs / ours:",
        _table(MILLISECONDS, run, effort),
        *remarks(run),
        *(_growth(run.growth) if run.growth else ()),
        f"`{COMMAND}` measures these alone.",
    ]


def _table(view: View, run: Run, effort: Effort) -> str:
    return figures_table(columns(view, effort), len(view.words), [(cells(view, row), False) for row in rows(run)])


def _work(effort: Effort) -> tuple[str, ...]:
    return (
        f"- **append at N**: one more exchange in a session that has N ({effort.appends} turns). For LangGraph it is"
        " one `ainvoke` of a graph with one node, the graph's own work included; for Pydantic AI a load, two messages"
        " more, and a save; for a workflow's checkpoints one more checkpoint.",
        f"- **load N**: all of a session of N exchanges ({effort.loads} turns); the latest of N checkpoints.",
        f"- **list N**: all sessions of a store that has N of one exchange ({effort.listings} turns).",
    )


def _growth(found: Result) -> list[str]:
    return [
        "### A thread of LangGraph",
        f"The disk that a thread takes after {found.effort.kept_turns:,} turns, an exchange each, once the store is"
        " closed; and one more turn in a long thread. *graph alone* is the same graph on a saver that keeps the last"
        " state in memory: what a saver can change is the rest.",
        figures_table(growth.columns(found), 1, [(line, False) for line in growth.rows(found)]),
    ]


def notes(run: Run) -> list[str]:
    """How each store was used."""
    found = [
        f"- **{_named(result, store)}** ({store.face}). {store.used}"
        for result in run.adapters
        for store in result.stores
        if store.used
    ]
    return [f"### {TITLE}", "\n".join(found)] if found else []


def _named(result: Result, store: Figures) -> str:
    return f"{store.name}, under {result.engine}" if store.is_ours else store.name
