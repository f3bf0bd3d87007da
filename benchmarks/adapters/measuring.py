"""Measure frameworks' own stores and ours, as the peers are measured: pair by pair, in turns."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.adapters.pairs import GROWTH, PAIRS
from benchmarks.peers.contests import in_brief
from benchmarks.peers.entries import Tell
from benchmarks.peers.figures import Run
from benchmarks.peers.measuring import held


async def measure(run: Run, names: Sequence[str], is_quick: bool, tell: Tell) -> None:
    """Add the figures of these frameworks to a run."""
    contests = [PAIRS[name] for name in names]
    with_growth = [*contests, GROWTH] if PAIRS["langgraph"] in contests else contests
    results = await held([in_brief(contest) for contest in with_growth] if is_quick else with_growth, tell)
    run.adapters = results[: len(contests)]
    grown = results[len(contests) :]
    run.growth = next((found for found in grown if not any("import" in store.errors for store in found.stores)), None)
