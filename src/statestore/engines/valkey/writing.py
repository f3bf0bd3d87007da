"""Making batches on one server: as many as there are in one round trip, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import Change, Outcome
from statestore.engines.grouping import Results
from statestore.engines.judging import check_batch
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.planning import Plan, Planner, outcomes_of
from statestore.engines.valkey.settling import Settlement


class BatchWriter:
    """Plans batches, has them made, and reads what came of them."""

    def __init__(self, caller: Caller, planner: Planner) -> None:
        self._caller = caller
        self._planner = planner
        self._settlement = Settlement()

    async def make_all(self, batches: Sequence[Sequence[Change]]) -> Results:
        """Make each of some batches wholly or not at all; its outcomes, or why it was not made."""
        results: dict[int, list[Outcome] | Exception] = {}
        plans: dict[int, Plan] = {}
        for index, batch in enumerate(batches):
            try:
                check_batch(batch)
                if batch:
                    plans[index] = self._planner.plan(batch)
                else:
                    results[index] = []
            except Exception as error:  # noqa: BLE001 - told to the one caller, whatever it is
                results[index] = error
        if plans:
            replies = await self._settlement.run_each(self._caller, list(plans.values()))
            for index, reply in zip(plans, replies, strict=True):
                results[index] = self._result(batches[index], reply)
        return [results[index] for index in range(len(batches))]

    def _result(self, batch: Sequence[Change], reply: object) -> list[Outcome] | Exception:
        error = self._caller.explained(reply)
        if error is not None:
            return error
        assert isinstance(reply, bytes)
        try:
            return outcomes_of(batch, reply)
        except Exception as refusal:  # noqa: BLE001 - told to the one caller, whatever it is
            return refusal
