"""The long form: rounds of every proof until its share of the time is used up, and what came of them."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from soak.proof import Proof, tried


@dataclass(frozen=True)
class Failure:
    """A promise that was broken, and how to see it broken again."""

    proof: str
    engine: str
    seed: int
    error: str

    @property
    def command(self) -> str:
        return f"make soak SOAK='--only {self.proof} --engine {self.engine} --seed {self.seed} --rounds 1'"


@dataclass
class Tally:
    """What was tried of one proof on one engine."""

    proof: Proof
    engine: str
    rounds: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])


def soak(
    proofs: Sequence[Proof],
    *,
    seed: int,
    seconds: float,
    rounds: int | None = None,
    engines: Sequence[str] = (),
    tell: Callable[[Tally], None],
) -> list[Tally]:
    """Try everything for so long, or for so many rounds each; `tell` hears of each round."""
    shares = sum(proof.share for proof in proofs)
    tallies: list[Tally] = []
    for proof in proofs:
        chosen = [engine for engine in proof.engines if not engines or engine in engines]
        for engine in chosen:
            tallies.append(tally := Tally(proof, engine))
            _try_for(tally, seed, seconds * proof.share / shares / len(chosen), rounds, tell)
    return tallies


def _try_for(tally: Tally, seed: int, seconds: float, rounds: int | None, tell: Callable[[Tally], None]) -> None:
    start = time.monotonic()
    while tally.rounds < rounds if rounds is not None else tally.seconds < seconds:
        own_seed = seed + tally.rounds
        try:
            tally.counts += tried(tally.proof, tally.engine, own_seed, seconds)
        except Exception:  # noqa: BLE001 - whatever a round raises is a finding, told with its seed
            tally.failures.append(Failure(tally.proof.name, tally.engine, own_seed, traceback.format_exc()))
        tally.rounds += 1
        tally.seconds = time.monotonic() - start
        tell(tally)
        if tally.failures or tally.proof.lasts:
            return
