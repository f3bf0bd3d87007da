"""One write door: a batch happens entirely or not at all, however much it holds."""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    ALICE,
    appended,
    created,
    document_of,
    event,
    everything_in,
    moment,
    put,
    said_in,
    session_of,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.conformance.faces import Work
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    Failure,
    PutDocument,
    Requires,
    SessionQuery,
)
from statestore.errors import DocumentConflict, InvalidValue, NotSupported
from statestore.session import Session

ROUNDS: Final = 20


class AtomicityCases(Contract):
    """All or nothing."""

    @case
    async def test_a_failing_change_stops_its_batch_at_every_position(self, bench: Bench) -> None:
        """Wherever in a batch the failing change stands, nothing of the batch is to be seen."""
        await bench.commit(put("old"))
        await bench.commit(PutDocument("gone", "n", "md", b"text"))
        await bench.commit(created("s", user("one")))
        await bench.commit(created("t", user("two")))
        good: list[Change] = [
            put("new"),
            put("old", b"2"),
            DeleteCategory("gone"),
            appended("s", user("more")),
            DeleteSession("t"),
            created("u", user("three")),
        ]
        before = await everything_in(bench.engine)
        for bad in (put("taken", b"1", Requires(present=True)), DeleteSession("v", Requires(version="1"))):
            for place in range(len(good) + 1):
                batch = [*good[:place], bad, *good[place:]]
                if not bench.spans:
                    await bench.assert_refused(batch)
                else:
                    assert await bench.failures_of(*batch) == [Failure(place, "missing")]
                assert await everything_in(bench.engine) == before
        await bench.reopen()
        assert await everything_in(bench.engine) == before

    @case
    async def test_a_batch_of_everything_happens(self, bench: Bench) -> None:
        """Many sessions, many documents, deletions and a category change in one batch, each with its outcome."""
        await bench.commit(PutDocument("gone", "n", "md", b"text"))
        await bench.commit(put("gone"))
        await bench.commit(created("gone"))
        batch: list[Change] = [DeleteCategory("gone"), DeleteDocument("notes", "gone", "json"), DeleteSession("gone")]
        batch += [put(f"n{index}", str(index).encode()) for index in range(20)]
        batch += [
            created(f"s{index:02}", user(f"hello {index}"), event("tool", index), at=index) for index in range(20)
        ]
        outcomes = await bench.commit(*batch)
        assert [outcome.deleted for outcome in outcomes] == [1, 1, 1] + [0] * 40
        assert [outcome.seqs for outcome in outcomes[23:]] == [(1, 2)] * 20
        await bench.reopen()
        for index in range(20):
            assert (await document_of(bench.engine, f"n{index}")).body == str(index).encode()
            assert await said_in(bench.engine, f"s{index:02}") == [f"hello {index}", index]
            stored = await session_of(bench.engine, f"s{index:02}")
            assert str(stored.version) == str(outcomes[23 + index].version)
        assert await bench.engine.list_categories() == ["notes"]
        assert await bench.engine.count_sessions(SessionQuery()) == 20

    @case
    async def test_a_batch_names_each_item_once(self, bench: Bench) -> None:
        """A batch that names an item twice is refused whole, whatever is done to it."""
        await bench.commit(put("n"))
        await bench.commit(created("s"))
        before = await everything_in(bench.engine)
        twice: list[list[Change]] = [
            [put("n", b"2"), put("n", b"3")],
            [put("n", b"2"), DeleteDocument("notes", "n", "json")],
            [appended("s", user("one")), appended("s", user("two"))],
            [appended("s", user("one")), DeleteSession("s")],
            [DeleteSession("t"), created("t")],
            [DeleteCategory("notes"), DeleteCategory("notes")],
            [DeleteCategory("notes"), put("m")],
            [put("m"), DeleteCategory("notes")],
            [DeleteDocument("notes", "n", "json"), DeleteCategory("notes")],
        ]
        for batch in twice:
            with pytest.raises(InvalidValue if bench.spans else (InvalidValue, NotSupported)):
                await bench.engine.commit(batch)
            assert await everything_in(bench.engine) == before

    @case
    async def test_likeness_is_not_sameness(self, bench: Bench) -> None:
        """A batch may name what is only similar: kinds, categories below, a session named like a document."""
        await bench.commit(PutDocument("notes/sub", "n", "json", b"1"))
        await bench.commit(
            put("n", b"1", kind="json"),
            put("n", b"2", kind="md"),
            put("n", b"3", kind="bin"),
            PutDocument("other", "n", "json", b"4"),
            DeleteCategory("notes/sub"),
            DeleteCategory("not"),
            created("n"),
            created("notes"),
        )
        assert (await document_of(bench.engine, "n", "md")).body == b"2"
        assert await bench.engine.list_categories() == ["notes", "other"]
        assert await bench.engine.count_sessions(SessionQuery()) == 2

    @case
    async def test_a_session_changes_in_all_its_parts_at_once(self, bench: Bench) -> None:
        """Whoever reads a session sees a change whole: records, fields, metadata and counts belong together."""
        await bench.commit(created("s", metadata={"n": b"0"}))

        async def write() -> None:
            for index in range(1, ROUNDS + 1):
                change = ChangeSession(
                    "s",
                    moment(index),
                    append=(user("one", index), event("two", index, index)),
                    set_fields={"active_seed_id": str(index)},
                    set_metadata={"n": str(index).encode()},
                )
                await bench.engine.commit([change])

        async def read() -> int:
            stored = await session_of(bench.engine, "s")
            seen = int(stored.metadata.removeprefix(b'{"n":').removesuffix(b"}"))
            assert len(stored.records.in_order()) == 2 * seen
            assert stored.next_seq == 2 * seen + 1
            assert stored.message_count == seen
            assert stored.fields.active_seed_id == (str(seen) if seen else None)
            listed = await bench.engine.list_sessions(SessionQuery())
            if listed or bench.engine.atomic_scope == "store":  # else one that is touched may be left out
                (summary,) = listed
                assert summary.message_count == summary.event_count >= seen
            return seen

        await _while_writing(bench, write, read, read)

    @case
    async def test_readers_never_see_half_a_batch(self, bench: Bench) -> None:
        """Once a reader has seen one part of a batch, it sees the others."""
        names = ("a", "b", "c")
        await bench.commit(*(put(name, b"0") for name in names), created("s"))

        async def write() -> None:
            for index in range(1, ROUNDS + 1):
                batch = [*(put(name, str(index).encode()) for name in names), appended("s", user("x", index))]
                await bench.commit(*batch)

        async def read(*order: str) -> int:
            values = [int((await document_of(bench.engine, name)).body) for name in order]
            values.append(len(await said_in(bench.engine, "s")))
            if bench.spans:
                assert values == sorted(values), f"{order} read as {values}"
            return values[0]

        await _while_writing(bench, write, partial(read, *names), partial(read, *names[::-1]))

    @case
    async def test_a_block_of_writes_happens_together(self, bench: Bench) -> None:
        """What is written to store.batch() is stored at its end, all or none; an error in the block stores nothing."""
        session = Session.with_id(ALICE, "s")
        session.add_user_message("one")
        if not bench.spans:
            with pytest.raises(NotSupported):
                async with bench.store.batch() as batch:
                    batch.save_json("notes", "n", 1)
                    batch.save_session(session)
            assert await everything_in(bench.engine) == {}
            return
        async with bench.store.batch() as batch:
            batch.save_json("notes", "n", 1)
            batch.save_markdown("notes", "n", "text")
            batch.save_session(session)
            assert await bench.engine.list_categories() == []
        assert await bench.store.load_json("notes", "n") == 1
        before = await everything_in(bench.engine)
        session.add_user_message("two")
        with pytest.raises(DocumentConflict):
            async with bench.store.batch() as batch:
                batch.save_session(session)
                batch.delete_file("notes", "n", kind="md")
                batch.save_json("notes", "n", 2, if_version="no such version")
        assert await everything_in(bench.engine) == before
        with pytest.raises(ZeroDivisionError):
            async with bench.store.batch() as batch:
                batch.save_session(session)
                raise ZeroDivisionError
        assert await everything_in(bench.engine) == before
        async with bench.store.batch() as batch:
            batch.save_session(session)
        assert await said_in(bench.engine, "s") == ["one", "two"]


async def _while_writing(bench: Bench, write: Work[None], *readers: Work[int]) -> None:
    """Read again and again until the writer is done, and once more; what is read never goes back in time."""
    is_done = False

    async def watched_write() -> None:
        nonlocal is_done
        try:
            await write()
        finally:
            is_done = True

    async def repeat(read: Work[int]) -> None:
        seen = 0
        while not is_done:
            now = await read()
            assert now >= seen, "a reader never goes back in time"
            seen = now
            await bench.breathe()
        assert await read() == ROUNDS

    await bench.together(watched_write, *(partial(repeat, read) for read in readers))
