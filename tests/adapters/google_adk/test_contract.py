"""ADK's contract for session services: first on its own three, then on ours."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

from adapters.google_adk.conftest import Opened
from adapters.google_adk.events import TRIP, changing, conversation, said

ALICE = {"app_name": "ferries", "user_id": "alice"}
BOB = {"app_name": "ferries", "user_id": "bob"}


async def reloaded(service: Any, session: Any) -> Any:
    found = await service.get_session(app_name=session.app_name, user_id=session.user_id, session_id=session.id)
    assert found is not None
    return found


def test_a_session_that_is_not_there_is_none(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            assert await service.get_session(**TRIP) is None

    asyncio.run(scene())


def test_what_is_created_is_what_is_loaded(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            before = time.time()
            session = await service.create_session(**ALICE, state={"pier": 3})
            assert (session.app_name, session.user_id, session.state, session.events) == (
                "ferries",
                "alice",
                {"pier": 3},
                [],
            )
            assert session.id
            assert before - 1e-6 <= session.last_update_time <= time.time()
            assert await reloaded(service, session) == session
            other = await service.create_session(**ALICE)
            assert other.id != session.id

    asyncio.run(scene())


def test_an_id_is_taken_once_for_each_user(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            await service.create_session(**TRIP, state={"mine": 1, "user:seen": 1})
            with pytest.raises(AlreadyExistsError):
                await service.create_session(**TRIP, state={"mine": 2, "user:seen": 2})
            kept = await service.get_session(**TRIP)
            assert kept.state == {"mine": 1, "user:seen": 1}
            bobs = await service.create_session(**BOB, session_id="trip")
            assert bobs.state == {}
            elsewhere = await service.create_session(app_name="trains", user_id="alice", session_id="trip")
            assert elsewhere.state == {}

    asyncio.run(scene())


def test_events_come_back_equal_and_in_order(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            events = conversation()
            for one in events:
                assert await service.append_event(session, one) is one
            assert session.events == events
            found = await reloaded(service, session)
            assert found.events == events
            assert [one.timestamp for one in found.events] == [one.timestamp for one in events]
            assert [one.id for one in found.events] == [one.id for one in events]

    asyncio.run(scene())


def test_an_event_keeps_all_its_fields(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            whole = Event(
                invocation_id="invocation",
                author="skipper",
                content=types.Content(role="model", parts=[types.Part(text="text")]),
                turn_complete=True,
                partial=False,
                actions=EventActions(artifact_delta={"file": 0}, transfer_to_agent="mate", escalate=True),
                long_running_tool_ids={"tool1"},
                branch="skipper.mate",
                error_code="error_code",
                error_message="error_message",
                interrupted=True,
                grounding_metadata=types.GroundingMetadata(
                    web_search_queries=["q"], search_entry_point=types.SearchEntryPoint(sdk_blob=b"\xff\x00blob")
                ),
                usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=2),
                citation_metadata=types.CitationMetadata(),
                custom_metadata={"deep": {"er": [1, 2.5, None, True, "東京"]}},
                timestamp=session.last_update_time + 0.123456,
                input_transcription=types.Transcription(text="in", finished=True),
                output_transcription=types.Transcription(text="out", finished=True),
            )
            await service.append_event(session, whole)
            found = await reloaded(service, session)
            assert found.events == [whole]
            assert found == session

    asyncio.run(scene())


def test_the_last_update_is_the_time_of_the_last_event(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            moment = session.last_update_time + 10.000001
            await service.append_event(session, said("later", timestamp=moment))
            assert session.last_update_time == pytest.approx(moment, abs=1e-6)
            assert (await reloaded(service, session)).last_update_time == session.last_update_time

    asyncio.run(scene())


def test_partial_events_are_not_stored(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            await service.append_event(session, said("half a wo", "skipper", partial=True))
            assert session.events == []
            assert (await reloaded(service, session)).events == []

    asyncio.run(scene())


def test_state_belongs_to_the_session_the_user_or_the_app(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"own": 1, "user:theme": "dark", "app:port": "A"})
            await service.append_event(session, changing(own=2, user__size=4, app__tide={"high": [1, None]}))
            expected = {
                "own": 2,
                "user:theme": "dark",
                "user:size": 4,
                "app:port": "A",
                "app:tide": {"high": [1, None]},
            }
            assert session.state == expected
            assert (await reloaded(service, session)).state == expected
            second = await service.create_session(**ALICE)
            assert second.state == {key: value for key, value in expected.items() if ":" in key}
            bobs = await service.create_session(**BOB)
            assert bobs.state == {key: value for key, value in expected.items() if key.startswith("app:")}
            elsewhere = await service.create_session(app_name="trains", user_id="alice")
            assert elsewhere.state == {}

    asyncio.run(scene())


def test_a_key_is_replaced_whole_and_may_be_none(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"plan": {"a": 1, "b": 2}, "user:plan": {"a": 1}})
            await service.append_event(session, changing(plan={"a": 3}, user__plan=None))
            assert (await reloaded(service, session)).state == {"plan": {"a": 3}, "user:plan": None}

    asyncio.run(scene())


def test_temporary_state_is_seen_and_never_stored(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"temp:now": 1, "kept": 1})
            assert session.state == {"kept": 1}
            one = changing(temp__draft="x", kept=2)
            await service.append_event(session, one)
            assert session.state == {"temp:draft": "x", "kept": 2}
            assert one.actions.state_delta == {"kept": 2}
            found = await reloaded(service, session)
            assert found.state == {"kept": 2}
            assert found.events[0].actions.state_delta == {"kept": 2}

    asyncio.run(scene())


def test_a_users_state_can_be_had_without_a_session(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            if "get_user_state" not in vars(type(service)):
                pytest.skip("this release of ADK does not ask for it")
            assert await service.get_user_state(**ALICE) == {}
            session = await service.create_session(**TRIP)
            await service.append_event(session, changing(user__visits=1, own=2, app__port="A"))
            await service.append_event(session, changing(user__visits=2))
            assert await service.get_user_state(**ALICE) == {"visits": 2}
            assert await service.get_user_state(**BOB) == {}
            assert await service.get_user_state(app_name="trains", user_id="alice") == {}
            await service.delete_session(**TRIP)
            assert await service.get_user_state(**ALICE) == {"visits": 2}

    asyncio.run(scene())


def test_a_deleted_session_is_gone_and_its_id_is_free(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"own": 1})
            bobs = await service.create_session(**BOB, session_id="trip")
            await service.append_event(session, said("hello"))
            await service.delete_session(**TRIP)
            await service.delete_session(**TRIP)
            assert await service.get_session(**TRIP) is None
            with pytest.raises(ValueError, match="not found"):
                await service.append_event(session, said("anybody there?"))
            assert await service.get_session(**TRIP) is None
            assert await reloaded(service, bobs) == bobs
            again = await service.create_session(**TRIP)
            assert (again.events, again.state) == ([], {})
            assert (await reloaded(service, again)).events == []

    asyncio.run(scene())


def test_the_newest_events_can_be_asked_for(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"own": 1})
            start = session.last_update_time
            events = conversation()
            for number, one in enumerate(events, 1):
                one.timestamp = start + number
                await service.append_event(session, one)

            async def got(**config: Any) -> Any:
                found = await service.get_session(**TRIP, config=GetSessionConfig(**config))
                assert found.state == {"own": 1}
                assert found.last_update_time == session.last_update_time
                return found.events

            for count in range(len(events) + 2):
                assert await got(num_recent_events=count) == events[len(events) - min(count, len(events)) :]
            assert await got(after_timestamp=start + 3) == events[2:]
            assert await got(after_timestamp=start + 3.5) == events[3:]
            assert await got(after_timestamp=start + 100) == []
            assert await got(after_timestamp=start + 3, num_recent_events=2) == events[-2:]
            assert await got(after_timestamp=start + 5, num_recent_events=4) == events[-2:]
            assert await got() == events

    asyncio.run(scene())


def test_one_may_go_on_from_a_part_of_a_session(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP)
            for number in range(5):
                await service.append_event(session, said(str(number)))
            part = await service.get_session(**TRIP, config=GetSessionConfig(num_recent_events=2))
            await service.append_event(part, said("5"))
            await service.append_event(part, changing(own=1))
            assert len(part.events) == 4
            found = await reloaded(service, session)
            assert [one.content.parts[0].text for one in found.events[:6]] == list("012345")
            assert found.state == {"own": 1}

    asyncio.run(scene())


def test_a_listing_has_state_and_no_events_oldest_first(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            assert (await service.list_sessions(**ALICE)).sessions == []
            for name in ("a", "b", "c"):
                await service.create_session(**ALICE, session_id=name, state={"name": name})
            await service.create_session(**BOB, session_id="d", state={"user:x": 1, "app:y": 2})
            await service.create_session(app_name="trains", user_id="alice", session_id="e")
            first = await service.get_session(**ALICE, session_id="a")
            await service.append_event(first, said("hello", timestamp=first.last_update_time + 60))

            alices = (await service.list_sessions(**ALICE)).sessions
            assert [(one.id, one.user_id, one.app_name) for one in alices] == [
                ("b", "alice", "ferries"), ("c", "alice", "ferries"), ("a", "alice", "ferries"),
            ]  # fmt: skip
            assert all(one.events == [] for one in alices)
            assert alices[0].state == {"name": "b", "app:y": 2}
            assert alices[-1].last_update_time == first.last_update_time
            everybody = (await service.list_sessions(app_name="ferries")).sessions
            assert [one.id for one in everybody] == ["b", "c", "d", "a"]
            assert everybody[2].state == {"user:x": 1, "app:y": 2}
            assert (await service.list_sessions(app_name="nothing")).sessions == []

    asyncio.run(scene())


def test_a_listing_tells_what_changed_since_the_last_one(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"own": 1})
            assert (await service.list_sessions(**ALICE)).sessions[0].state == {"own": 1}
            await service.append_event(session, changing(own=2, user__visits=1))
            listed = (await service.list_sessions(**ALICE)).sessions[0]
            assert listed.state == {"own": 2, "user:visits": 1}
            await service.append_event(listed, said("from a listing"))
            assert len((await reloaded(service, session)).events) == 2
            await service.delete_session(**TRIP)
            assert (await service.list_sessions(**ALICE)).sessions == []

    asyncio.run(scene())


def test_what_is_given_out_is_a_copy(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as service:
            session = await service.create_session(**TRIP, state={"list": [1], "user:list": [1], "app:list": [1]})
            for key in session.state:
                session.state[key].append(2)
            listed = (await service.list_sessions(**ALICE)).sessions[0]
            for key in listed.state:
                listed.state[key].append(3)
            found = await reloaded(service, session)
            assert found.state == {"list": [1], "user:list": [1], "app:list": [1]}

    asyncio.run(scene())


def test_state_that_is_not_json_is_stored_as_adk_stores_it(opened_persistent: Opened) -> None:
    from datetime import UTC, datetime

    async def scene() -> None:
        async with opened_persistent() as service:
            moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
            session = await service.create_session(**TRIP, state={"made": moment, "user:made": moment})
            await service.append_event(session, changing(changed=moment, app__changed=moment))
            found = await reloaded(service, session)
            assert found.state == dict.fromkeys(("made", "user:made", "changed", "app:changed"), "2026-01-31T12:00:00Z")

    asyncio.run(scene())


def test_a_model_in_the_state_is_stored_with_all_its_fields_by_their_aliases(opened_persistent: Opened) -> None:
    from pydantic import BaseModel, Field

    class Ticket(BaseModel):
        ferry: str = Field(alias="ferryName")
        seat: int | None

    async def scene() -> None:
        async with opened_persistent() as service:
            ticket = Ticket(ferryName="10:40", seat=None)
            session = await service.create_session(**TRIP, state={"made": ticket})
            await service.append_event(session, changing(changed=ticket, user__changed=[ticket]))
            found = await reloaded(service, session)
            plain = {"ferryName": "10:40", "seat": None}
            assert found.state == {"made": plain, "changed": plain, "user:changed": [plain]}

    asyncio.run(scene())


def test_temporary_state_may_be_of_any_kind(opened_persistent: Opened, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with opened_persistent() as service:
            session = await service.create_session(**TRIP, state={"temp:lock": object()})
            await service.append_event(session, changing(temp__lock=object(), kept=1))
            assert (await reloaded(service, session)).state == {"kept": 1}

    asyncio.run(scene())
    assert not caplog.records


def test_what_was_stored_is_there_when_it_is_opened_again(
    opened_persistent: Opened, request: pytest.FixtureRequest
) -> None:
    if "memory" in request.node.callspec.id:
        pytest.skip("keeps nothing")

    async def scene() -> None:
        async with opened_persistent() as service:
            session = await service.create_session(**TRIP, state={"own": 1, "user:x": 2, "app:y": 3})
            for one in conversation():
                await service.append_event(session, one)
        async with opened_persistent() as service:
            assert await reloaded(service, session) == session
            await service.append_event(session, said("on another day"))
            assert await reloaded(service, session) == session

    asyncio.run(scene())
