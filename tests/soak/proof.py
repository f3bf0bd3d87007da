"""What a proof is: a promise, the engines it holds on, and a round that tries it once, from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from soak.grounds import Ground, fresh


@dataclass(frozen=True)
class Round:
    """One try: on an empty store, from a seed that makes it repeatable as far as the machine allows."""

    ground: Ground
    seed: int
    seconds: float
    """How long a round that may last as long as it likes is to last."""

    def random(self, *purpose: object) -> random.Random:
        """Chance for one purpose, the same for the same seed."""
        return random.Random(repr((self.seed, *purpose)))


@dataclass(frozen=True)
class Proof:
    """A promise, and how it is tried. A round returns what it tried, counted, and raises if the promise is broken."""

    name: str
    promise: str
    engines: tuple[str, ...]
    round: Callable[[Round], Mapping[str, int]]
    goal: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the long form is to reach, over all engines."""
    share: float = 1.0
    """Of the time of a soak, beside the shares of others."""
    lasts: bool = False
    """Whether a round takes all the time it is given: then there is one for each engine."""


def tried(proof: Proof, engine: str, seed: int, seconds: float) -> Counter[str]:
    """One round on a store of its own."""
    with fresh(engine) as ground:
        return Counter(proof.round(Round(ground, seed, seconds)))


def shortly(proof: Proof, engine: str, *, rounds: int = 1, seconds: float = 1.0, seed: int = 1) -> Counter[str]:
    """A few rounds, for a test: what was tried, which is never nothing."""
    assert engine in proof.engines
    counts: Counter[str] = Counter()
    for number in range(rounds):
        counts += tried(proof, engine, seed + number, seconds)
    assert counts, "nothing was tried"
    return counts
