"""The state machine: random histories on a store, compared with the oracle after every step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from statestore.conformance.contract import Contract
from statestore.conformance.faces import FaceName
from statestore.conformance.session_rules import SessionRules
from statestore.conformance.store_rules import StoreRules


class MachineCases(Contract):
    """Whatever is done, in whatever order."""

    def test_any_history_ends_as_the_oracle_says(self, face: FaceName, tmp_path: Path) -> None:
        """Saves, merges, edits, rewinds, forks, prunes, batches and crashes in any order: all is as it should be."""
        trial = type("Trial", (_Histories,), {"contract": self, "face_name": face, "places": _places(tmp_path)})
        run_state_machine_as_test(trial, settings=self.machine_settings())  # pyright: ignore[reportUnknownMemberType]

    def machine_settings(self) -> settings:
        """How long and how often the machine runs: the same histories each time, and no clock."""
        return settings(
            max_examples=self.examples,
            stateful_step_count=self.steps,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
            phases=(Phase.generate, Phase.shrink),
        )


class _Histories(SessionRules, StoreRules):
    """All rules together."""


def _places(directory: Path) -> Iterator[Path]:
    """A new place for each history."""
    return (directory / f"store{number}" for number in count())
