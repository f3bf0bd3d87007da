"""When a session object is stale: what ADK's own persistent services say, and what ours say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.sessions.session import Session

from adapters.google_adk.conftest import Opened
from adapters.google_adk.events import TRIP, changing, said
from statestore.adapters.google_adk import StaleSessionError


async def two_copies(service: Any, **state: Any) -> tuple[Session, Session]:
    await service.create_session(**TRIP, state=state)
    return await service.get_session(**TRIP), await service.get_session(**TRIP)


def texts(session: Session | None) -> list[str | None]:
    assert session is not None
    return [one.content.parts[0].text if one.content and one.content.parts else None for one in session.events]


def test_a_superseded_object_is_stale_and_writes_nothing(opened_persistent: Opened) -> None:
    async def scene() -> None:
        async with opened_persistent() as service:
            mine, theirs = await two_copies(service, own=0)
            await service.append_event(theirs, said("theirs", timestamp=mine.last_update_time + 1))
            for _ in range(2):
                with pytest.raises(ValueError, match=r"stale|modified in storage"):
                    await service.append_event(mine, said("mine", timestamp=mine.last_update_time + 2))
            late = changing(own=1, user__x=1, app__y=1, timestamp=mine.last_update_time + 3)
            with pytest.raises(ValueError, match=r"stale|modified in storage"):
                await service.append_event(mine, late)
            assert mine.events == []
            found = await service.get_session(**TRIP)
            assert texts(found) == ["theirs"]
            assert found.state == {"own": 0}

    asyncio.run(scene())


def test_who_loads_again_may_go_on(opened_persistent: Opened) -> None:
    async def scene() -> None:
        async with opened_persistent() as service:
            mine, theirs = await two_copies(service)
            await service.append_event(theirs, said("theirs", timestamp=mine.last_update_time + 1))
            mine = await service.get_session(**TRIP)
            await service.append_event(mine, said("mine", timestamp=mine.last_update_time + 1))
            assert texts(await service.get_session(**TRIP)) == ["theirs", "mine"]

    asyncio.run(scene())


def test_another_session_of_the_user_makes_nobody_stale(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            mine = await service.create_session(**TRIP, state={"user:x": 0, "app:y": 0})
            other = await service.create_session(**{**TRIP, "session_id": "other"})
            await service.append_event(other, changing(user__x=1, app__y=1))
            await service.append_event(mine, changing(user__x=2, user__z=2))
            found = await service.get_session(**TRIP)
            assert found.state == {"user:x": 2, "user:z": 2, "app:y": 1}

    asyncio.run(scene())


def test_an_object_that_only_its_own_writer_uses_is_never_stale(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            start = session.last_update_time
            for number, step in enumerate((1, 1e-7, 1e-7, 0, 0.1 + 0.2, 1 / 3, 60)):
                start += step
                await service.append_event(session, said(str(number), timestamp=start))
            assert len((await service.get_session(**TRIP)).events) == 7

    asyncio.run(scene())


def test_tasks_that_share_an_object_take_turns(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            await asyncio.gather(*(service.append_event(session, said(f"{n}")) for n in range(20)))
            await asyncio.gather(*(service.append_event(session, changing(**{f"k{n}": n})) for n in range(20)))
            found = await service.get_session(**TRIP)
            assert len(found.events) == len(session.events) == 40
            assert found.state == {f"k{n}": n for n in range(20)}
            assert found == session

    asyncio.run(scene())


def test_of_copies_that_write_at_once_one_wins(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            await service.create_session(**TRIP, state={"count": 0})
            for turn in range(5):
                copies = [await service.get_session(**TRIP) for _ in range(4)]
                writes = [service.append_event(one, changing(count=turn + 1)) for one in copies]
                outcomes = await asyncio.gather(*writes, return_exceptions=True)
                assert sum(isinstance(one, StaleSessionError) for one in outcomes) == 3
            found = await service.get_session(**TRIP)
            assert (found.state["count"], len(found.events)) == (5, 5)

    asyncio.run(scene())


def test_a_copy_that_lost_its_mark_is_judged_by_its_last_event(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            await service.append_event(session, said("one"))
            current = Session.model_validate_json(session.model_dump_json())
            outdated = Session.model_validate_json(session.model_dump_json())
            current.last_update_time -= 0.0001  # as after a trip through something that rounds
            await service.append_event(current, said("two"))
            await service.append_event(current, said("three"))
            with pytest.raises(StaleSessionError):
                await service.append_event(outdated, said("four"))
            assert texts(await service.get_session(**TRIP)) == ["one", "two", "three"]

    asyncio.run(scene())


def test_a_title_given_by_another_program_makes_nobody_stale(sqlite_url: str) -> None:
    from statestore import AsyncStateStore
    from statestore.adapters.google_adk import StateStoreSessionService

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            await store.update_session_with(
                "ferries:alice:trip", lambda kept: kept.set_metadata("title", "A day on the island")
            )
            await service.append_event(session, said("one"))
            await store.update_session_with("ferries:alice:trip", lambda kept: kept.set_metadata("pinned", True))
            await service.append_event(session, changing(own=1))
            kept = await store.load_session("ferries:alice:trip")
            assert kept is not None
            assert (kept.metadata["title"], kept.metadata["state"]) == ("A day on the island", {"own": 1})

    asyncio.run(scene())


def test_a_session_made_anew_is_another(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            old = await service.create_session(**TRIP)
            await service.delete_session(**TRIP)
            await service.create_session(**TRIP)
            with pytest.raises(StaleSessionError):
                await service.append_event(old, said("to whom?"))

    asyncio.run(scene())


# -- With stale_when="overwriting": as ADK's own in memory, but nothing is lost.


def test_where_nothing_is_overwritten_writers_follow_each_other(opened_ours: Any) -> None:
    async def scene() -> None:
        async with opened_ours(stale_when="overwriting") as service:
            mine, theirs = await two_copies(service)
            await service.append_event(theirs, said("theirs"))
            await service.append_event(mine, said("mine"))
            await service.append_event(theirs, changing(a=1, user__a=1))
            await service.append_event(mine, changing(b=2, user__b=2))
            await service.append_event(theirs, changing(a=3, user__a=3))
            await service.append_event(mine, changing(b=4, user__b=4))
            found = await service.get_session(**TRIP)
            assert texts(found)[:2] == ["theirs", "mine"]
            assert len(found.events) == 6
            assert found.state == {"a": 3, "b": 4, "user:a": 3, "user:b": 4}

    asyncio.run(scene())


@pytest.mark.parametrize("key", ["count", "user__count", "app__count"])
def test_a_key_that_somebody_else_set_is_not_overwritten(opened_ours: Any, key: str) -> None:
    async def scene() -> None:
        async with opened_ours(stale_when="overwriting") as service:
            mine, theirs = await two_copies(service)
            await service.append_event(theirs, changing(**{key: 1}))
            await service.append_event(mine, said("a message is no conflict"))
            await service.append_event(mine, changing(other=1))
            with pytest.raises(StaleSessionError):
                await service.append_event(mine, changing(**{key: 1}))
            mine = await service.get_session(**TRIP)
            await service.append_event(mine, changing(**{key: 2}))
            await service.append_event(mine, changing(**{key: 3}))
            assert (await service.get_session(**TRIP)).state[key.replace("__", ":")] == 3

    asyncio.run(scene())


def test_the_error_is_adks_own_where_adk_has_one() -> None:
    from google.adk import errors

    assert getattr(errors, "StaleSessionError", StaleSessionError) is StaleSessionError
    assert issubclass(StaleSessionError, ValueError)
