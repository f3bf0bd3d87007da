"""Repairs: what is sound stays as it is."""

from __future__ import annotations

from statestore.conformance.bench import Bench
from statestore.conformance.changes import agent, created, everything_in, put, user
from statestore.conformance.contract import Contract, offered


class RepairCases(Contract):
    """What is wrong is each engine's own; that nothing is lost is everybody's."""

    @offered("repair")
    async def test_a_repair_changes_nothing_that_is_sound(self, bench: Bench) -> None:
        """It finds nothing to do, and leaves everything as it was, versions included."""
        await bench.commit(created("s", user("one", key="k"), agent("two"), metadata={"a": b"1.0"}))
        await bench.commit(put("n", b"2"))
        before = await everything_in(bench.engine)
        assert await bench.store.check(repair=True) == []
        assert await everything_in(bench.engine) == before
