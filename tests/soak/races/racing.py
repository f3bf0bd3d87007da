"""The proof: no history that no order explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from soak.proof import Proof, Round
from soak.races.crew import Gang, Plan, run, run_with_deaths
from soak.races.explaining import explain_history
from soak.races.history import Operation
from soak.races.themes import THEMES
from soak.races.worker import Scene

HISTORIES: Final = 24
DEATHS: Final = 4

CREWS: Final[tuple[tuple[Gang, ...], ...]] = (
    (Gang("plain", 2), Gang("plain", 2)),
    (Gang("plain", 1), Gang("plain", 1), Gang("plain", 1), Gang("plain", 1)),
    (Gang("async", 3), Gang("plain", 2)),
    (Gang("async", 5),),
    (Gang("plain", 4),),
)
ALONE: Final[tuple[tuple[Gang, ...], ...]] = ((Gang("plain", 4),), (Gang("async", 4),), (Gang("plain", 6),))
"""Who races where processes share nothing."""


def race(round_: Round) -> Mapping[str, int]:
    """Some histories on one store, by one crew; every one of them has an order that explains it."""
    chance, engine = round_.random("crew"), round_.ground.engine
    has_deaths = engine != "memory" and chance.random() < 0.25
    themes = list(THEMES) if engine != "valkey-cluster" else ["everything", "talk", "lives", "papers"]
    gangs = CREWS[0] if has_deaths else chance.choice(ALONE if engine == "memory" else CREWS)
    scenes = scenes_on(engine, themes, DEATHS if has_deaths else HISTORIES)
    plan = Plan(round_.ground.target, round_.ground.directory, gangs, scenes, chance.randint(6, 12), round_.seed)
    return explained(run_with_deaths(plan) if has_deaths else run(plan))


def scenes_on(engine: str, themes: Sequence[str], count: int) -> tuple[Scene, ...]:
    """So many histories, with one theme after the other."""
    return tuple(
        Scene(number, themes[number % len(themes)], is_whole=engine != "files", spans=engine != "valkey-cluster")
        for number in range(count)
    )


def explained(histories: Mapping[int, Sequence[Operation]]) -> Mapping[str, int]:
    """How much was done, if there is an order for everything."""
    for operations in histories.values():
        explain_history(operations)
    return {"histories": len(histories), "operations": sum(map(len, histories.values()))}


PROOF: Final = Proof(
    name="races",
    promise="whatever happens at the same time has an order that explains what everybody was told",
    engines=("memory", "files", "sqlite", "postgres", "valkey", "valkey-cluster"),
    round=race,
    goal={"histories": 10_000},
)
