"""Closing, crashing, opening again: what was acknowledged is there, and nothing else."""

from __future__ import annotations

from typing import Any

from statestore.conformance.bench import Bench
from statestore.conformance.changes import agent, appended, created, event, everything_in, put, said_in, truncated, user
from statestore.conformance.contract import Contract, case
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    PutDocument,
    Requires,
    SessionQuery,
)

HISTORY: list[Change] = [
    created(
        "s1", user("one", key="k1"), agent("two"), event("tool", {"n": 1}), at=1, metadata={"b": b"1.0", "a": b"2"}
    ),
    created("s2", user("x"), user_id="bob", at=2, fields={"project_id": "p"}),
    created("s3", at=3),
    put("n", b'{"a": 1}'),
    put("n", b"# n", kind="md"),
    PutDocument("notes/sub", "m", "bin", b"\0\1"),
    PutDocument("gone", "m", "json", b"1"),
    appended("s1", user("three"), agent("four", key="k4"), at=4),
    truncated("s1", 3, user("five")),
    ChangeSession("s2", "2026-01-02T00:00:09Z", set_fields={"project_id": None}, set_metadata={"title": b'"T"'}),
    DeleteSession("s3"),
    DeleteCategory("gone"),
    DeleteDocument("notes", "n", "md"),
]


class ReopeningCases(Contract):
    """What was acknowledged stays. For an engine that keeps nothing: a new one is empty."""

    @case
    async def test_closing_keeps_everything(self, bench: Bench) -> None:
        """After every change, closing and opening gives back exactly what was there, versions included."""
        before: dict[str, Any] = {}
        for change in HISTORY:
            await bench.commit(change)
            before = await everything_in(bench.engine)
            await bench.reopen()
            assert await everything_in(bench.engine) == before
        await _assert_others_see(bench, before)

    @case
    async def test_crashing_keeps_everything(self, bench: Bench) -> None:
        """After every change, an engine dropped without closing has lost nothing, and none is locked out."""
        before: dict[str, Any] = {}
        for change in HISTORY:
            await bench.commit(change)
            before = await everything_in(bench.engine)
            await bench.crash()
            assert await everything_in(bench.engine) == before
            assert await bench.engine.check() == []
        await _assert_others_see(bench, before)

    @case
    async def test_a_crash_keeps_a_batch_whole(self, bench: Bench) -> None:
        """A batch of many items is there, whole, after a crash; a refused one is not."""
        items = [put(f"n{index}") for index in range(10)] + [created(f"s{index}", user("x")) for index in range(10)]
        await bench.commit(*items)
        before = await everything_in(bench.engine)
        await bench.crash()
        assert await everything_in(bench.engine) == before
        assert len(before) == 20
        refused = put("n1", b"2", Requires(absent=True))
        if bench.spans:
            await bench.failures_of(*(put(f"m{index}") for index in range(5)), refused)
        else:
            await bench.failures_of(refused)
        await bench.crash()
        assert await everything_in(bench.engine) == before

    @case
    async def test_two_engines_on_one_storage_see_each_other(self, bench: Bench) -> None:
        """What one engine acknowledged, another one that is open on the same storage sees at once."""
        other = (await bench.another()).engine
        seen: dict[str, Any] = {}
        for index, change in enumerate(HISTORY):
            writer, reader = (bench.engine, other) if index % 2 else (other, bench.engine)
            await writer.commit([change])
            seen = await everything_in(reader)
            assert seen == await everything_in(writer)
            assert (await reader.list_sessions(SessionQuery())) == (await writer.list_sessions(SessionQuery()))
        assert set(seen) == {"session s1", "session s2", "document notes/n.json", "document notes/sub/m.bin"}

    @case
    async def test_two_engines_on_one_storage_judge_alike(self, bench: Bench) -> None:
        """A version that one engine gave out is a precondition at another, and is stale there once it was used."""
        other = await bench.another()
        (outcome,) = await bench.commit(created("s", user("one")))
        (after,) = await other.engine.commit([appended("s", user("two"), requires=Requires(version=outcome.version))])
        assert [f.reason for f in await bench.failures_of(DeleteSession("s", Requires(version=outcome.version)))] == [
            "version"
        ]
        await bench.commit(appended("s", user("three"), requires=Requires(version=str(after.version))))
        assert await said_in(other.engine, "s") == ["one", "two", "three"]

    @case
    async def test_opening_changes_nothing(self, bench: Bench) -> None:
        """Opening and closing, again and again, neither adds nor removes anything."""
        for change in HISTORY:
            await bench.commit(change)
        before = await everything_in(bench.engine)
        for _ in range(3):
            await bench.reopen()
            await bench.crash()
        assert await everything_in(bench.engine) == before
        assert len(before) == 4


async def _assert_others_see(bench: Bench, held: dict[str, Any]) -> None:
    """Another engine sees the same, where the storage outlives an engine; else it is a store of its own."""
    assert len(held) == 4
    engine = bench.face.fit(bench.new_engine())
    await engine.open()
    try:
        assert await everything_in(engine) == (held if bench.reopens else {})
    finally:
        await engine.close()
