"""The session store of the Agent Framework: first the framework's own two, then ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import AgentSession, Message

from adapters.agent_framework.conftest import Scene, StateStoreSessionStore
from adapters.agent_framework.test_history import ANSWER, MESSAGES, QUESTION, plain
from adapters.reading import assert_readable
from statestore import AsyncStateStore, Event, InvalidValue


def session(*messages: Message, **state: Any) -> AgentSession:
    made = AgentSession(session_id="s1", service_session_id="resp_1")
    made.state = {**state, **({"in_memory": {"messages": list(messages), "more": 1}} if messages else {})}
    return made


def test_a_session_comes_back_as_it_was(snapshots: Scene) -> None:
    async def scene(store: Any) -> None:
        assert await store.get("trip") is None
        stored = session(*MESSAGES, counter=1, nested={"deep": [1, 2.5, None, "東京"]})
        await store.set("trip", stored)
        found = await store.get("trip")
        assert (found.session_id, found.service_session_id) == ("s1", "resp_1")
        assert found.to_dict() == stored.to_dict()
        assert all(isinstance(message, Message) for message in found.state["in_memory"]["messages"])

    snapshots.run(scene)


def test_a_copy_is_given_out_each_time(snapshots: Scene) -> None:
    async def scene(store: Any) -> None:
        stored = session(counter=1)
        await store.set("trip", stored)
        stored.state["counter"] = 2
        first = await store.get("trip")
        first.state["counter"] = 3
        assert (await store.get("trip")).state == {"counter": 1}

    snapshots.run(scene)


def test_a_session_replaces_the_one_before_it(snapshots: Scene) -> None:
    async def scene(store: Any) -> None:
        for stored in (
            session(QUESTION, a=1),
            session(QUESTION, ANSWER, b=2),
            session(ANSWER),
            session(c=3),
            session(*MESSAGES),
        ):
            await store.set("trip", stored)
            assert (await store.get("trip")).to_dict() == stored.to_dict()

    snapshots.run(scene)


def test_what_is_deleted_is_gone_and_may_be_deleted_again(snapshots: Scene) -> None:
    async def scene(store: Any) -> None:
        await store.set("trip", session(QUESTION))
        await store.set("other", session(ANSWER))
        for _ in range(2):
            await store.delete("trip")
            assert await store.get("trip") is None
        assert await store.get("other") is not None

    snapshots.run(scene)


@pytest.mark.parametrize("bad", ["", None, 7])
def test_an_id_is_a_text_that_is_not_empty(snapshots: Scene, bad: Any) -> None:
    async def scene(store: Any) -> None:
        with pytest.raises(ValueError, match="non-empty"):
            await store.get(bad)
        with pytest.raises(ValueError, match="non-empty"):
            await store.set(bad, session())
        with pytest.raises(ValueError, match="non-empty"):
            await store.delete(bad)

    snapshots.run(scene)


@pytest.mark.parametrize("session_id", ["team/alice", "..", "x" * 100, "a%2Fb", "naïve 東京"])
def test_any_text_is_an_id(snapshots: Scene, session_id: str) -> None:
    async def scene(store: Any) -> None:
        await store.set(session_id, session(n=1))
        await store.set(session_id + "/", session(n=2))
        assert (await store.get(session_id)).state == {"n": 1}

    snapshots.run(scene)


def test_a_conversation_that_is_none_is_state_like_any_other(snapshots: Scene) -> None:
    async def scene(store: Any) -> None:
        stored = session(mine={"messages": ["a", "b"]}, other={"messages": []}, third={"messages": "text"})
        await store.set("trip", stored)
        assert (await store.get("trip")).to_dict() == stored.to_dict()

    snapshots.run(scene)


# -- What ours promises beyond the contract.


def test_a_person_can_read_the_conversation(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessionStore(store_url, user_id="alice") as store:
            await store.set("trip", session(*MESSAGES))

    asyncio.run(scene())
    seen = assert_readable(
        store_url, "trip:session-store", user=QUESTION.text, agent="The 10:40.", word="ferry", event="tool_call"
    )
    assert "alice" in seen.ls


def test_only_what_is_new_of_a_conversation_is_written(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            snapshots = StateStoreSessionStore(store)
            await snapshots.set("trip", session(*MESSAGES))
            before = [entry.seq for entry in await store.timeline("trip:session-store")]
            await snapshots.set("trip", session(*MESSAGES, ANSWER))
            after = [entry.seq for entry in await store.timeline("trip:session-store")]
            assert after == [*before, before[-1] + 1]

    asyncio.run(scene())


@pytest.mark.filterwarnings("ignore:AgentSession state value")  # the framework says so too
def test_what_is_not_json_is_refused_and_nothing_changes(sqlite_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessionStore(sqlite_url) as store:
            await store.set("trip", session(n=1))
            with pytest.raises((InvalidValue, TypeError)):
                await store.set("trip", session(n=object()))
            found = await store.get("trip")
            assert found is not None
            assert found.state == {"n": 1}

    asyncio.run(scene())


def test_a_session_of_ones_own_class_is_refused(sqlite_url: str) -> None:
    class Mine(AgentSession):
        pass

    async def scene() -> None:
        async with StateStoreSessionStore(sqlite_url) as store:
            with pytest.raises(TypeError, match="AgentSession"):
                await store.set("trip", Mine())

    asyncio.run(scene())


def test_messages_added_by_others_are_part_of_the_conversation(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            snapshots = StateStoreSessionStore(store)
            await snapshots.set("trip", session(QUESTION))
            stored = await store.load_session("trip:session-store")
            assert stored is not None
            stored.add_agent_response("The 10:40.")
            await store.save_session(stored)
            found = await snapshots.get("trip")
            assert found is not None
            assert plain(found.state["in_memory"]["messages"])[0] == QUESTION.to_dict()
            assert found.state["in_memory"]["messages"][1].text == "The 10:40."

    asyncio.run(scene())


def test_a_snapshot_replaces_messages_and_nothing_else(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            snapshots, place = StateStoreSessionStore(store), "trip:session-store"
            await snapshots.set("trip", session(*MESSAGES[:2]))
            await store.append(place, Event("feedback", 5), keys=["feedback"])
            for stored in (session(*MESSAGES[:3]), session(*MESSAGES[1:3]), session(*MESSAGES), session(n=1)):
                await snapshots.set("trip", stored)
                found = await snapshots.get("trip")
                assert found is not None
                assert found.to_dict() == stored.to_dict()
                (feedback,) = (entry for entry in await store.timeline(place) if entry.kind == "feedback")
                assert await store.append(place, Event("feedback", 5), keys=["feedback"]) == [feedback.seq]

    asyncio.run(scene())
