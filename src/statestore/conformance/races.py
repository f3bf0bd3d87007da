"""Many at once: threads in the plain face, tasks in the other, all on one store, or on two over one storage."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, created, document_of, happens, put, said_in, session_of, user
from statestore.conformance.contract import Contract, case
from statestore.engine import Change, Requires, SessionQuery
from statestore.errors import DocumentConflict
from statestore.records import UserMessage
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore

WRITERS: Final = 4
ROUNDS: Final = 8


class RaceCases(Contract):
    """Nothing is lost between many."""

    @case
    async def test_many_appends_to_one_session_are_all_kept(self, bench: Bench) -> None:
        """Writers that append to one session at once lose nothing; each one's messages are in its order."""
        await bench.commit(created("s"))
        stores = [bench.store, (await bench.another()).store]

        async def write(writer: int) -> list[int]:
            store = stores[writer % 2]
            return [(await store.append("s", UserMessage(f"{writer} {n}")))[0] for n in range(ROUNDS)]

        answers = await bench.together(*(partial(write, writer) for writer in range(WRITERS)))
        assert sorted(seq for seqs in answers for seq in seqs) == list(range(1, WRITERS * ROUNDS + 1))
        said = await said_in(bench.engine, "s")
        for writer, seqs in enumerate(answers):
            assert [said[seq - 1] for seq in seqs] == [f"{writer} {n}" for n in range(ROUNDS)]
            assert seqs == sorted(seqs)

    @case
    async def test_many_saves_of_one_session_are_all_kept(self, bench: Bench) -> None:
        """Writers that load, add and save one session at once lose nothing."""
        await bench.commit(created("s"))
        stores = [bench.store, (await bench.another()).store]

        async def write(writer: int) -> None:
            for n in range(ROUNDS):
                session = await stores[writer % 2].load_session("s")
                assert session is not None
                session.add_user_message(f"{writer} {n}")
                session.set_metadata(f"{writer} {n}", n)
                await stores[writer % 2].save_session(session)

        await bench.together(*(partial(write, writer) for writer in range(WRITERS)))
        stored = await session_of(bench.engine, "s")
        assert stored.message_count == WRITERS * ROUNDS
        session = await bench.store.load_session("s")
        assert session is not None
        assert session.metadata == {f"{writer} {n}": n for writer in range(WRITERS) for n in range(ROUNDS)}

    @case
    async def test_one_object_can_be_saved_from_many_places(self, bench: Bench) -> None:
        """An object that several save at once stores each message once."""
        session = Session.with_id(ALICE, "s")

        async def write(writer: int) -> None:
            for n in range(ROUNDS):
                session.add_user_message(f"{writer} {n}")
                await bench.store.save_session(session)

        await bench.together(*(partial(write, writer) for writer in range(WRITERS)))
        await bench.store.save_session(session)
        said = await said_in(bench.engine, "s")
        assert sorted(said) == sorted(f"{writer} {n}" for writer in range(WRITERS) for n in range(ROUNDS))

    @case
    async def test_many_sessions_at_once_do_not_mix(self, bench: Bench) -> None:
        """Writers of sessions of their own meet no one."""

        async def write(writer: int) -> None:
            for n in range(ROUNDS):
                session = await bench.store.get_or_create_session(f"user {writer}", f"s{writer}")
                session.add_user_message(f"{writer} {n}")
                await bench.store.save_session(session)

        await bench.together(*(partial(write, writer) for writer in range(WRITERS * 2)))
        for writer in range(WRITERS * 2):
            assert await said_in(bench.engine, f"s{writer}") == [f"{writer} {n}" for n in range(ROUNDS)]
        assert await bench.engine.count_sessions(SessionQuery()) == WRITERS * 2

    @case
    async def test_two_who_create_one_id_get_one_session(self, bench: Bench) -> None:
        """get_or_create_session with one new id, from many at once, makes one session."""
        stores = [bench.store, (await bench.another()).store]

        async def create(writer: int, n: int) -> tuple[str, str]:
            session = await stores[writer % 2].get_or_create_session(ALICE, f"s{n}")
            return session.created_text, str(session.id)

        for n in range(ROUNDS):
            born = await bench.together(*(partial(create, writer, n) for writer in range(WRITERS)))
            assert len(set(born)) == 1
        assert await bench.engine.count_sessions(SessionQuery()) == ROUNDS

    @case
    async def test_a_counter_counts_every_success(self, bench: Bench) -> None:
        """Replacing a document only at the version that was read: no update is lost."""
        await bench.commit(put("n", b"0"))
        stores = [bench.store, (await bench.another()).store]

        async def count(writer: int) -> None:
            for _ in range(ROUNDS):
                await _increment(stores[writer % 2])

        await bench.together(*(partial(count, writer) for writer in range(WRITERS)))
        assert (await document_of(bench.engine, "n")).body == str(WRITERS * ROUNDS).encode()

    @case
    async def test_a_counter_in_metadata_counts_every_success(self, bench: Bench) -> None:
        """update_session_with from many at once: no update is lost."""
        await bench.commit(created("s", metadata={"n": b"0"}))

        def increment(session: Session) -> None:
            session.set_metadata("n", session.metadata["n"] + 1)

        async def count() -> None:
            for _ in range(ROUNDS):
                await bench.store.update_session_with("s", increment)

        await bench.together(*[count] * WRITERS)
        assert (await session_of(bench.engine, "s")).metadata == f'{{"n":{WRITERS * ROUNDS}}}'.encode()

    @case
    async def test_only_one_of_many_creates(self, bench: Bench) -> None:
        """Of many batches that require absence, one happens, and all of it does."""

        async def create(writer: int, n: int) -> bool:
            batch: list[Change] = [created(f"s{n}", user(f"by {writer}"), requires=Requires(absent=True))]
            if bench.spans:
                batch.append(put(f"n{n}", str(writer).encode(), Requires(absent=True)))
            return await happens(bench.engine, *batch)

        for n in range(ROUNDS):
            won = await bench.together(*(partial(create, writer, n) for writer in range(WRITERS)))
            assert sum(won) == 1
            assert await said_in(bench.engine, f"s{n}") == [f"by {won.index(True)}"]
            if bench.spans:
                assert (await document_of(bench.engine, f"n{n}")).body == str(won.index(True)).encode()

    @case
    async def test_a_cancelled_write_is_all_or_nothing(self, bench: Bench) -> None:
        """A write that was called off happened entirely or not at all, and the store goes on."""
        for turns in range(12):
            batch: list[Change] = [created(f"s{turns}", user("one"), user("two"))]
            if bench.spans:
                batch += [put(f"a{turns}"), put(f"b{turns}")]
            await _call_off(bench, batch, turns)
            stored = await bench.engine.read_session(f"s{turns}")
            assert stored is None or len(stored.records.in_order()) == 2
            if bench.spans:
                for name in (f"a{turns}", f"b{turns}"):
                    assert (await bench.engine.get_document("notes", name, "json") is None) == (stored is None)
        await bench.commit(put("after"))
        assert (await document_of(bench.engine, "after")).body == b"1"
        assert await bench.engine.check() == []

    @case
    async def test_a_cancelled_save_can_be_repeated(self, bench: Bench) -> None:
        """A save whose outcome nobody knows is repeated, and every message is there once."""
        session = Session.with_id(ALICE, "s")
        expected: list[str] = []
        for turns in range(12):
            session.add_user_message(f"m{turns}")
            expected.append(f"m{turns}")
            if bench.face.name == "async":
                task = asyncio.ensure_future(bench.store.save_session(session))
                await _cancel_after(task, turns)
            await bench.store.save_session(session)
            assert await said_in(bench.engine, "s") == expected


async def _increment(store: AsyncStateStore) -> None:
    while True:
        document = await store.get_document("notes", "n", kind="json")
        assert document is not None
        try:
            await store.save_json("notes", "n", document.value + 1, if_version=document.version)
        except DocumentConflict:
            continue
        return


async def _call_off(bench: Bench, batch: list[Change], turns: int) -> None:
    """Begin a commit and call it off: before its first step in plain code, after some turns of the loop else."""
    if bench.face.name == "plain":
        bench.engine.commit(batch).close()
    else:
        await _cancel_after(asyncio.ensure_future(bench.engine.commit(batch)), turns)


async def _cancel_after(task: asyncio.Future[Any], turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
