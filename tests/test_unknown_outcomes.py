"""A save that ended without telling whether it happened may be repeated: nothing is lost, nothing is stored twice."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from faces import Face, Place
from hooked import HookedEngine, SlowEngine
from statestore import (
    AgentResponse,
    AsyncStateStore,
    Event,
    Session,
    SessionConflict,
    SessionNotFound,
    StateStore,
    StoreUnavailable,
    UserMessage,
)


@pytest.fixture
def engine(place: Place) -> HookedEngine:
    return HookedEngine(place.engine())


@pytest.fixture
def store(face: Face, engine: HookedEngine) -> StateStore:
    return face.open(engine)  # type: ignore[arg-type]


@pytest.fixture(params=[False, True], ids=["it did not happen", "it happened"])
def happened(request: pytest.FixtureRequest) -> bool:
    return request.param


def told(store: StateStore, session_id: str = "s") -> list[str]:
    return [getattr(entry.record, "content", entry.kind) for entry in store.timeline(session_id)]


def stored(store: StateStore) -> Session:
    session = Session("alice", "s")
    session.add_user_message("a")
    session.add_agent_response("A")
    store.save_session(session)
    return session


def save_and_lose(store: StateStore, engine: HookedEngine, session: Session, *, happened: bool, **options: Any) -> None:
    engine.fail_once(after=happened)
    with pytest.raises(StoreUnavailable):
        store.save_session(session, **options)


def test_new_records_are_stored_once(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = stored(store)
    session.add_user_message("b")
    session.add_event("e")
    session.add_agent_response("B")
    save_and_lose(store, engine, session, happened=happened)
    session.add_user_message("c")
    store.save_session(session)
    assert told(store) == ["a", "A", "b", "e", "B", "c"]
    assert [getattr(entry.record, "content", entry.kind) for entry in session.timeline] == told(store)
    assert [entry.seq for entry in session.timeline] == [entry.seq for entry in store.timeline("s")]


def test_a_new_session_is_stored_once(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = Session("alice", "s")
    session.add_user_message("a")
    session.set_metadata("k", 1)
    save_and_lose(store, engine, session, happened=happened)
    store.save_session(session)
    assert told(store) == ["a"]
    session.user_messages.clear()
    store.save_session(session)
    assert told(store) == []


def test_a_new_session_without_records_is_stored_once(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = Session("alice", "s")
    save_and_lose(store, engine, session, happened=happened)
    session.add_user_message("a")
    store.save_session(session)
    assert told(store) == ["a"]


def test_fields_and_metadata_are_stored(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = stored(store)
    session.set_metadata("k", 1)
    session.set_active_seed("seed")
    save_and_lose(store, engine, session, happened=happened)
    store.save_session(session)
    loaded = store.load_session("s")
    assert loaded is not None
    assert (loaded.metadata, loaded.active_seed_id) == ({"k": 1}, "seed")


def test_what_was_changed_back_after_the_lost_save_is_stored(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    session = stored(store)
    session.set_metadata("k", "as it was")
    session.set_active_seed("as it was")
    store.save_session(session)
    session.set_metadata("k", "changed")
    session.set_metadata("new", 1)
    session.set_active_seed("changed")
    save_and_lose(store, engine, session, happened=happened)
    session.set_metadata("k", "as it was")
    del session.metadata["new"]
    session.set_active_seed("as it was")
    store.save_session(session)
    loaded = store.load_session("s")
    assert loaded is not None
    assert (loaded.metadata, loaded.active_seed_id) == ({"k": "as it was"}, "as it was")


def test_an_edit_after_a_lost_save_of_metadata_is_stored(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    session = stored(store)
    session.set_metadata("k", 1)
    save_and_lose(store, engine, session, happened=happened)
    session.user_messages.clear()
    store.save_session(session)
    assert told(store) == ["A"]


def test_a_session_that_was_in_the_trash_meanwhile_has_everything_once(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    session = stored(store)
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=happened)
    store.delete_session("s", trash_hours=1)
    with pytest.raises(SessionNotFound):
        store.save_session(session)
    store.restore_session("s")
    session.add_user_message("c")
    store.save_session(session)
    assert told(store) == ["a", "A", "b", "c"]


def test_somebody_elses_records_in_between_stay(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = stored(store)
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=happened)
    store.append("s", UserMessage("theirs"))
    session.add_user_message("c")
    store.save_session(session)
    assert sorted(told(store)) == ["A", "a", "b", "c", "theirs"]


def test_a_key_that_was_known_already_does_not_double_the_others(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    session = stored(store)
    store.append("s", Event("once"), keys=["k"])
    session.add_event("once", key="k")
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=happened)
    store.save_session(session)
    assert told(store) == ["a", "A", "once", "b"]


def _add_again(store: StateStore, session: Session) -> None:
    store.append("s", Event("once"), keys=["k"])
    session.add_event("once", key="k")


def _add(_: StateStore, session: Session) -> None:
    session.add_event("once", key="k")


def _cut(_: StateStore, session: Session) -> None:
    session.agent_responses.pop()


BESIDE: dict[str, tuple[Callable[[StateStore, Session], Any], Callable[[StateStore], Any]]] = {
    "a key that was known before": (_add_again, lambda _: None),
    "a key that somebody else stores": (_add, lambda store: store.append("s", Event("once"), keys=["k"])),
    "a rewind that somebody else makes": (_cut, lambda store: store.rewind_session("s", to=1)),
}


@pytest.mark.parametrize(("change", "meanwhile"), BESIDE.values(), ids=BESIDE)
def test_what_is_saved_beside_records_that_are_stored_anyway_is_stored(
    store: StateStore,
    engine: HookedEngine,
    happened: bool,
    change: Callable[[StateStore, Session], Any],
    meanwhile: Callable[[StateStore], Any],
) -> None:
    session = stored(store)
    change(store, session)
    session.set_metadata("status", "paid")
    session.set_active_seed("seed")
    save_and_lose(store, engine, session, happened=happened)
    meanwhile(store)
    store.save_session(session)
    loaded = store.load_session("s")
    assert loaded is not None
    assert (loaded.metadata, loaded.active_seed_id) == ({"status": "paid"}, "seed")
    assert told(store) in (["a", "A", "once"], ["a"])


EDITS: dict[str, tuple[Callable[[Session], Any], list[str]]] = {
    "removed the last": (lambda s: s.agent_responses.pop(), ["a"]),
    "removed the first": (lambda s: s.user_messages.pop(), ["A"]),
    "replaced": (lambda s: s.user_messages.__setitem__(0, UserMessage("x")), ["x", "A"]),
    "cleared": (lambda s: (s.user_messages.clear(), s.agent_responses.clear()), []),
}


@pytest.mark.parametrize(("edit", "left"), EDITS.values(), ids=EDITS)
def test_a_rewrite_may_be_repeated(
    store: StateStore, engine: HookedEngine, happened: bool, edit: Callable[[Session], Any], left: list[str]
) -> None:
    session = stored(store)
    edit(session)
    save_and_lose(store, engine, session, happened=happened)
    store.save_session(session)
    assert told(store) == left
    session.add_user_message("more")
    store.save_session(session)
    assert told(store) == [*left, "more"]


def test_a_session_stored_anew_is_stored_once(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = stored(store)
    store.delete_session("s")
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=happened, recreate=True)
    store.save_session(session, recreate=True)
    assert told(store) == ["a", "A", "b"]
    session.add_user_message("c")
    store.save_session(session)
    assert told(store) == ["a", "A", "b", "c"]


def test_an_edit_after_the_lost_save_is_stored(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session = stored(store)
    session.add_user_message("b")
    session.add_user_message("c")
    save_and_lose(store, engine, session, happened=happened)
    del session.user_messages[1]
    store.save_session(session)  # if it happened, this is a rewrite of what nobody else has touched
    assert told(store) == ["a", "A", "c"]


def test_an_edit_after_a_lost_save_and_somebody_elses_is_refused_and_nothing_is_lost(
    store: StateStore, engine: HookedEngine
) -> None:
    session = stored(store)
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=True)
    store.append("s", UserMessage("theirs"))
    del session.user_messages[1]
    with pytest.raises(SessionConflict):
        store.save_session(session)
    assert told(store) == ["a", "A", "b", "theirs"]


def _rewind(store: StateStore) -> None:
    store.rewind_session("s", to=3)


def _delete_one(store: StateStore) -> None:
    theirs = store.load_session("s")
    assert theirs is not None
    del theirs.user_messages[1]
    store.save_session(theirs)


REMOVED: dict[str, tuple[Callable[[StateStore], Any], list[str]]] = {
    "the last": (_rewind, ["a", "A", "b"]),
    "the first": (_delete_one, ["a", "A", "c"]),
}


@pytest.mark.parametrize(("remove", "left"), REMOVED.values(), ids=REMOVED)
def test_what_somebody_else_removed_of_a_save_that_happened_is_gone_and_the_rest_is_not_stored_twice(
    store: StateStore, engine: HookedEngine, remove: Callable[[StateStore], Any], left: list[str]
) -> None:
    session = stored(store)
    session.add_user_message("b")
    session.add_user_message("c")
    save_and_lose(store, engine, session, happened=True)
    remove(store)
    store.save_session(session)
    assert told(store) == left
    session.add_user_message("d")
    store.save_session(session)
    assert told(store) == [*left, "d"]
    del session.user_messages[0]
    with pytest.raises(SessionConflict):
        store.save_session(session)


def test_an_object_that_holds_other_records_than_the_store_does_not_rewrite_them(
    store: StateStore, engine: HookedEngine
) -> None:
    session = stored(store)
    store.rewind_session("s", to=1)
    store.append("s", UserMessage("theirs"))
    session.add_user_message("b")
    save_and_lose(store, engine, session, happened=True)
    session.agent_responses[0] = AgentResponse("another A")
    with pytest.raises(SessionConflict):
        store.save_session(session)
    assert told(store) == ["a", "theirs", "b"]


def test_a_save_with_a_key_that_somebody_else_used_does_not_rewrite_what_they_stored(
    store: StateStore, engine: HookedEngine
) -> None:
    session = stored(store)
    theirs = Event("theirs")
    store.append("s", theirs, keys=["k"])
    session.add_event("ours", key="k")
    save_and_lose(store, engine, session, happened=True)
    session.user_messages.clear()
    with pytest.raises(SessionConflict):
        store.save_session(session)
    assert told(store) == ["a", "A", "theirs"]


def test_a_session_that_somebody_else_stored_anew_has_everything_once_and_is_not_rewritten(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    session, theirs = stored(store), store.load_session("s")
    assert theirs is not None
    session.add_user_message("b")
    store.save_session(session)
    store.delete_session("s")
    theirs.user_messages[0] = UserMessage("x")
    store.save_session(theirs, recreate=True)
    session.add_user_message("c")
    save_and_lose(store, engine, session, happened=happened)
    store.save_session(session)
    assert told(store) == ["x", "A", "c"]
    session.agent_responses.clear()
    with pytest.raises(SessionConflict):
        store.save_session(session)


def _replace_first(session: Session) -> None:
    session.user_messages[0] = UserMessage("x")


def _remove_first(session: Session) -> None:
    del session.user_messages[0]


def _insert(session: Session) -> None:
    session.user_messages.insert(1, UserMessage("x"))


@pytest.mark.parametrize("rewrite", [_replace_first, _remove_first, _insert])
def test_somebody_elses_rewrite_is_not_taken_for_ones_own(
    store: StateStore, engine: HookedEngine, rewrite: Callable[[Session], Any]
) -> None:
    session = stored(store)
    session.add_user_message("b")
    store.save_session(session)
    session.agent_responses.clear()
    session.set_metadata("status", "paid")
    save_and_lose(store, engine, session, happened=False)
    store.update_session_with("s", rewrite)
    with pytest.raises(SessionConflict):
        store.save_session(session)
    assert "A" in told(store)


def test_what_is_saved_beside_records_that_come_back_out_of_the_trash_is_stored(
    store: StateStore, engine: HookedEngine
) -> None:
    session = stored(store)
    store.delete_session("s", trash_hours=1)
    session.set_metadata("status", "paid")

    def refuse_to_create(batch: Any) -> None:
        if batch[0].create is not None:
            raise StoreUnavailable("the connection was lost")

    engine.before = refuse_to_create
    with pytest.raises(StoreUnavailable):
        store.save_session(session, recreate=True)
    engine.before = None
    store.restore_session("s")
    store.save_session(session, recreate=True)
    loaded = store.load_session("s")
    assert loaded is not None
    assert loaded.metadata == {"status": "paid"}
    assert told(store) == ["a", "A"]


def test_somebody_elses_event_of_the_same_moment_is_not_taken_for_ones_own(
    store: StateStore, engine: HookedEngine, happened: bool
) -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    session = stored(store)
    session.events.append(Event("call", {"mine": 1}, timestamp=moment))
    save_and_lose(store, engine, session, happened=happened)
    store.append("s", Event("call", {"theirs": 1}, timestamp=moment))
    store.save_session(session)
    events = [entry.record for entry in store.timeline("s") if isinstance(entry.record, Event)]
    assert sorted(key for event in events for key in event.data) == ["mine", "theirs"]


def test_a_batch_may_be_repeated(store: StateStore, engine: HookedEngine, happened: bool) -> None:
    session, fresh = stored(store), Session("alice", "t")
    session.add_user_message("b")
    fresh.add_user_message("x")

    def save_both() -> None:
        with store.batch() as batch:
            batch.save_session(session)
            batch.save_session(fresh)
            batch.save_json("notes", "n", 1)

    engine.fail_once(after=happened)
    with pytest.raises(StoreUnavailable):
        save_both()
    save_both()
    assert (told(store), told(store, "t")) == (["a", "A", "b"], ["x"])
    assert store.load_json("notes", "n") == 1


# -- tasks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["before it happened", "after it happened"])
def test_a_cancelled_save_is_stored_or_not_and_the_next_one_makes_it_whole(place: Place, when: str) -> None:
    async def scenario() -> None:
        engine = SlowEngine(place.engine())
        engine.let_go()
        async with AsyncStateStore.open(engine) as store:  # type: ignore[arg-type]
            session = Session("alice", "s")
            session.add_user_message("a")
            await store.save_session(session)
            for event in (engine.may_commit, engine.may_return, engine.is_asked, engine.has_committed):
                event.clear()
            session.add_user_message("b")
            task = asyncio.create_task(store.save_session(session))
            if when == "after it happened":
                engine.may_commit.set()
                await engine.has_committed.wait()
            else:
                await engine.is_asked.wait()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
            engine.let_go()
            session.add_user_message("c")
            await store.save_session(session)
            loaded = await store.load_session("s")
            assert loaded is not None
            assert [message.content for message in loaded.user_messages] == ["a", "b", "c"]

    asyncio.run(scenario())


def test_a_save_cancelled_in_a_worker_is_entirely_stored_or_not_at_all(tmp_path: Any) -> None:
    async def scenario() -> None:
        async with AsyncStateStore.open(tmp_path / "state") as store:
            session = Session("alice", "s")
            await store.save_session(session)
            for number in range(20):
                session.add_user_message(f"{number}")
                session.add_agent_response(f"{number}")
                task = asyncio.create_task(store.save_session(session))
                for _ in range(number % 4):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                loaded = await store.load_session("s")
                assert loaded is not None
                assert len(loaded.user_messages) == len(loaded.agent_responses)
            await store.save_session(session)
            loaded = await store.load_session("s")
            assert loaded is not None
            assert [message.content for message in loaded.user_messages] == [str(number) for number in range(20)]

    asyncio.run(scenario())


@pytest.mark.parametrize("in_a_batch", [False, True], ids=["save_session twice", "save_session and a batch"])
def test_two_tasks_that_save_one_object_store_it_once(place: Place, in_a_batch: bool) -> None:
    async def scenario() -> None:
        engine = SlowEngine(place.engine())
        engine.let_go()
        async with AsyncStateStore.open(engine) as store:  # type: ignore[arg-type]
            session = Session("alice", "s")
            await store.save_session(session)
            engine.may_commit.clear()

            async def save_in_a_batch() -> None:
                async with store.batch() as batch:
                    batch.save_session(session)

            session.add_user_message("a")
            first = asyncio.create_task(store.save_session(session))
            await engine.is_asked.wait()
            session.add_user_message("b")
            second = asyncio.create_task(save_in_a_batch() if in_a_batch else store.save_session(session))
            await asyncio.sleep(0)
            engine.let_go()
            await asyncio.gather(first, second)
            session.add_user_message("c")
            await store.save_session(session)
            loaded = await store.load_session("s")
            assert loaded is not None
            assert [message.content for message in loaded.user_messages] == ["a", "b", "c"]

    asyncio.run(scenario())


def test_a_message_added_while_a_save_is_under_way_is_not_lost(place: Place) -> None:
    async def scenario() -> None:
        engine = SlowEngine(place.engine())
        async with AsyncStateStore.open(engine) as store:  # type: ignore[arg-type]
            session = Session("alice", "s")
            session.add_user_message("a")
            task = asyncio.create_task(store.save_session(session))
            await engine.is_asked.wait()
            session.add_user_message("b")
            session.set_metadata("k", 1)
            session.set_active_seed("seed")
            engine.let_go()
            await task
            await store.save_session(session)
            loaded = await store.load_session("s")
            assert loaded is not None
            assert [message.content for message in loaded.user_messages] == ["a", "b"]
            assert (loaded.metadata, loaded.active_seed_id) == ({"k": 1}, "seed")

    asyncio.run(scenario())


def test_many_threads_that_save_one_object_store_it_once(place: Place) -> None:
    with StateStore.open(place.engine()) as store:
        session = Session("alice", "s")
        store.save_session(session)
        for number in range(20):
            session.add_user_message(str(number))
            session.add_agent_response(AgentResponse(str(number)))
            start = threading.Barrier(4)

            def save(start: threading.Barrier = start) -> None:
                start.wait()
                store.save_session(session)

            threads = [threading.Thread(target=save) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert told(store) == [str(number) for number in range(20) for _ in range(2)]
