"""The page of a run: how it was made, the tables, the plot, and how each store was used."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.adapters import page as adapters
from benchmarks.peers.crowding import EXCHANGES_PER_TASK, TASKS
from benchmarks.peers.figures import Effort, Result, Run
from benchmarks.peers.markdown import figures_table
from benchmarks.peers.table import WORDS, cells, columns, remarks

COMMAND = "make bench-peers"


def written(run: Run, page: Path, plot: Path | None) -> str:
    """The whole page. The plot is linked from it, if there is one."""
    parts = [
        "# Beside its peers",
        "What stores of sessions cost that agent frameworks ship with, and what statestore costs, for the same work in"
        " the same process. This page is written by the command that measures:",
        f"```sh\n{COMMAND}\n```",
        f"It installs the peers and the servers into an environment of its own. Last run: {run.date}, in"
        f" {run.minutes:.0f} minutes, {run.machine}.",
        "Medians. A dash: it does not offer that. Compare rows of one table: on a machine that does other work, figures"
        " of two runs may differ by half.",
        *(part for contest in run.contests for part in _table(contest)),
        *(_work(run.contests[0].effort) if run.contests else ()),
        *_picture(run, page, plot),
        *adapters.section(run),
        *_notes(run),
    ]
    return "\n\n".join(parts) + "\n"


def _table(contest: Result) -> list[str]:
    rows = [(cells(store, contest.effort), store.is_ours) for store in contest.stores]
    marked = [remark.replace("*", r"\*") for remark in remarks(contest)]
    about = [contest.about] if contest.about else []
    return [f"## On {contest.engine}", *about, figures_table(columns(contest.effort), WORDS, rows), *marked]


def _work(effort: Effort) -> list[str]:
    return [
        "## The work",
        "An exchange is a user's message and a reply, 200 bytes each. The stores take turns, in an order that is"
        " shuffled for each turn; before each, everything on the disk is flushed, so that nobody waits for what another"
        " left behind. Connections are warm. Long sessions are filled beforehand in the quickest way that a store has,"
        " which need not wait for the disk.",
        "\n".join(
            (
                f"- **append at N**: one durable append of an exchange by one task, to a session that has N"
                f" ({effort.appends} turns). The session grows while it is measured: by five exchanges or a fifth at"
                " most.",
                f"- **load {effort.loaded[-1]:,}**: all of a session into the store's own objects ({effort.loads}"
                " turns).",
                f"- **{TASKS} tasks**: a session each, {EXCHANGES_PER_TASK} exchanges each, {effort.rounds} rounds"
                " after one that does not count. Tasks of one loop where the store is asynchronous, threads where it"
                " is plain. A store may commit together what waits at the same time; the floor commits each exchange"
                " by itself.",
                f"- **newest {effort.newest} of {effort.listed[-1]:,}**: the listing of a store with so many sessions"
                f" of one exchange ({effort.listings} turns).",
            )
        ),
    ]


def _picture(run: Run, page: Path, plot: Path | None) -> list[str]:
    if plot is None or not run.contests:
        return []
    link = Path(os.path.relpath(plot, page.parent)).as_posix()
    place = f"On {run.contests[0].engine}:"
    return ["## As a session grows", place, f"![The cost of one append against the length of the session]({link})"]


def _notes(run: Run) -> list[str]:
    parts = ["## How each was used", "As it ships, with no setting changed."]
    for contest in run.contests:
        notes = [f"- **{store.name}** ({store.face}). {store.used}" for store in contest.stores if store.used]
        parts += [f"### On {contest.engine}", "\n".join(notes)]
    return parts + adapters.notes(run)
