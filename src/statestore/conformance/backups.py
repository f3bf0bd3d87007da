"""Backups: a copy of one moment, made while the store is in use."""

from __future__ import annotations

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import agent, appended, created, everything_in, put, said_in, user
from statestore.conformance.contract import Contract, offered
from statestore.errors import StateStoreError


class BackupCases(Contract):
    """A backup is a store."""

    @offered("backup")
    async def test_a_backup_holds_everything(self, bench: Bench) -> None:
        """A copy opens as a store of its own that holds all that was there, versions and keys included, and no more."""
        await bench.commit(created("s", user("one", key="k"), agent("two"), metadata={"a": b"1.0"}), put("n", b"2"))
        before = await everything_in(bench.engine)
        path = bench.place.with_name("copy.db")
        await bench.store.backup(path)
        await bench.commit(appended("s", user("later")))
        copy = bench.face.fit(self.make_copys_engine(path))
        await copy.open()
        try:
            assert await everything_in(copy) == before
            assert await copy.check() == []
            (outcome,) = await copy.commit([appended("s", user("x", key="k"), user("only in the copy"))])
            assert outcome.seqs == (1, 3)
        finally:
            await copy.close()
        assert await said_in(bench.engine, "s") == ["one", "two", "later"]

    @offered("backup")
    async def test_a_backup_writes_over_nothing(self, bench: Bench) -> None:
        """Where something is already, backup refuses, and leaves it as it is."""
        await bench.commit(created("s", user("one")))
        path = bench.place.with_name("taken.db")
        path.write_bytes(b"precious")
        with pytest.raises(StateStoreError):
            await bench.store.backup(path)
        assert path.read_bytes() == b"precious"
        assert await said_in(bench.engine, "s") == ["one"]
