"""Tasks that are cancelled wherever they wait, shortly: every method of the store, on every engine."""

from __future__ import annotations

import inspect

import pytest

from faults.deeds import CHANGES, ENDS, LOOKS, OF_DATABASES
from soak.faults import PROOF
from soak.proof import shortly
from statestore import AsyncStateStore


def test_every_method_that_can_be_cancelled_is_tried() -> None:
    methods = {name for name, member in inspect.getmembers(AsyncStateStore) if inspect.iscoroutinefunction(member)}
    tried = {*LOOKS, *CHANGES, *OF_DATABASES, *ENDS}
    assert {name for name in methods if not name.startswith("_")} <= tried


@pytest.mark.parametrize("engine", PROOF.engines)
def test_a_cancelled_call_happened_or_not_and_the_store_goes_on(engine: str) -> None:
    counts = shortly(PROOF, engine)
    assert engine == "memory" or counts["cancelled calls"] > 50
