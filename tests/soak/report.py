"""What a soak found, as a table for people and as JSON for machines."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soak.soaking import Tally
from statestore import __version__


def as_json(tallies: Sequence[Tally], seed: int) -> dict[str, Any]:
    """The seed, and what was tried of each proof on each engine."""
    return {
        "seed": seed,
        "tried": [
            {
                "proof": tally.proof.name,
                "engine": tally.engine,
                "rounds": tally.rounds,
                "seconds": round(tally.seconds, 1),
                "counts": dict(tally.counts),
                "failures": [{"seed": failure.seed, "command": failure.command} for failure in tally.failures],
            }
            for tally in tallies
        ],
    }


def as_markdown(tallies: Sequence[Tally], seed: int, seconds: float) -> str:
    """A table, under the command that made it."""
    lines = [
        f"`make soak SOAK='--seconds {seconds:g} --seed {seed}'`, statestore {__version__}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}:",
        "",
        "| proof | engine | rounds | seconds | tried | broken |",
        "|---|---|---:|---:|---|---:|",
    ]
    for tally in tallies:
        counts = ", ".join(f"{count:,} {what}" for what, count in tally.counts.items())
        lines.append(
            f"| {tally.proof.name} | {tally.engine} | {tally.rounds:,} | {tally.seconds:,.0f} "
            f"| {counts} | {len(tally.failures)} |"
        )
    for proof in {tally.proof.name: tally.proof for tally in tallies}.values():
        for what, goal in proof.goal.items():
            reached = sum(tally.counts[what] for tally in tallies if tally.proof is proof)
            lines.append(f"\n{proof.name}: {reached:,} {what}; the long form asks for {goal:,}.")
    return "\n".join(lines)


def replace_report(page: Path, subject: str, report: str) -> None:
    """Put a report in the place of the last one about its subject on a page."""
    begin, end = f"<!-- {subject}: written by its command -->", f"<!-- {subject} ends -->"
    before, _, rest = page.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{page} has no place for this report: {begin} … {end}")
    page.write_text(f"{before}{begin}\n{report}\n{end}{after}")
