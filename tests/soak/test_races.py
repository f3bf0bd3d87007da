"""Whatever happens at the same time has an order that explains what everybody was told."""

from __future__ import annotations

import pytest

from soak.grounds import fresh
from soak.proof import shortly
from soak.races.crew import Plan, run
from soak.races.racing import CREWS, PROOF, explained, scenes_on

ROUNDS = {"memory": 4, "files": 2, "sqlite": 5, "postgres": 2, "valkey": 4, "valkey-cluster": 2}


@pytest.mark.parametrize("engine", PROOF.engines)
def test_every_history_has_an_order_that_explains_it(engine: str) -> None:
    counts = shortly(PROOF, engine, rounds=ROUNDS[engine])
    assert counts["operations"] > counts["histories"] > 0


def test_on_files_too_a_category_is_emptied_at_one_moment() -> None:
    with fresh("files") as ground:
        plan = Plan(ground.target, ground.directory, CREWS[1], scenes_on("files", ["papers"], 60), 9, seed=1)
        assert explained(run(plan))["histories"] == 60
