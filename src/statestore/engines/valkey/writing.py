"""Making batches on one server: as many as there are in one round trip, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import Batch, Result
from statestore.engines.judging import check_batch
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.planning import Plan, Planner, outcomes_of
from statestore.engines.valkey.settling import Settlement


class BatchWriter:
    """Plans batches, has them made, and reads what came of them."""

    def __init__(self, caller: Caller, planner: Planner) -> None:
        self._caller = caller
        self._planner = planner
        self._settlement = Settlement(caller)

    async def make_all(self, batches: Sequence[Batch]) -> list[Result]:
        """Make each of some batches wholly or not at all; its outcomes, or why it was not made."""
        results: dict[int, Result] = {}
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
            replies = await self._settlement.run_each(list(plans.values()))
            for index, reply in zip(plans, replies, strict=True):
                results[index] = self._result(batches[index], reply)
        return [results[index] for index in range(len(batches))]

    def _result(self, batch: Batch, reply: object) -> Result:
        try:
            return outcomes_of(batch, self._caller.granted(reply))
        except Exception as error:  # noqa: BLE001 - told to the one caller, whatever it is
            return error
