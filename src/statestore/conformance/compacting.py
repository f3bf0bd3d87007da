"""Compacting: what is there stays as it is, and takes no more room than it needs."""

from __future__ import annotations

from statestore.conformance.bench import Bench
from statestore.conformance.changes import agent, appended, created, everything_in, put, said_in, user
from statestore.conformance.contract import Contract, offered
from statestore.engine import DeleteSession


class CompactingCases(Contract):
    """Only what was deleted is missed."""

    @offered("compact")
    async def test_what_is_compacted_is_the_same_as_before(self, bench: Bench) -> None:
        """Everything is as it was, versions and keys included, and whoever wrote before goes on writing."""
        await bench.commit(created("s", user("one", key="k"), agent("two"), metadata={"a": b"1.0"}), put("n", b"2"))
        await bench.commit(created("t", user("three")))
        await bench.commit(DeleteSession("t"))
        before = await everything_in(bench.engine)
        assert await bench.store.compact() >= 0
        assert await everything_in(bench.engine) == before
        assert await bench.store.check() == []
        (outcome,) = await bench.commit(appended("s", user("x", key="k"), user("later")))
        assert outcome.seqs == (1, 3)
        assert await said_in(bench.engine, "s") == ["one", "two", "later"]
