"""What our service promises beyond ADK's contract."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.sessions.base_session_service import GetSessionConfig

from adapters.google_adk.conftest import Opened
from adapters.google_adk.events import QUESTION, TRIP, changing, conversation, said
from adapters.reading import assert_readable
from statestore import AsyncStateStore, InvalidValue, StateStore, StoreClosed, UserMessage
from statestore.adapters.google_adk import StateStoreSessionService

ID = "ferries:alice:trip"


# -- An event that is delivered twice.


@pytest.mark.parametrize("part", [None, 0, 2])
def test_an_event_that_is_delivered_twice_is_stored_once(opened_ours: Opened, part: int | None) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            first, *others = [changing(count=1), *conversation(), changing(count=2)]
            await service.append_event(session, first)
            for one in others:
                await service.append_event(session, one)
            config = None if part is None else GetSessionConfig(num_recent_events=part)
            again = await service.get_session(**TRIP, config=config)
            for holder in (session, again):
                for one in (first, others[1], others[-1]):
                    assert await service.append_event(holder, one.model_copy(deep=True)) == one
            found = await service.get_session(**TRIP)
            assert found.events == [first, *others]
            assert found.state == {"count": 2}
            assert session == found

    asyncio.run(scene())


def test_an_event_whose_answer_was_lost_may_be_sent_again(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            await service.append_event(session, said("before"))
            copy = session.model_copy(deep=True)  # knows nothing of what comes now
            lost = changing(count=1, user__count=1)
            await service.append_event(session, lost)
            await service.append_event(copy, lost.model_copy(deep=True))
            await service.append_event(copy, said("after"))
            found = await service.get_session(**TRIP)
            assert found == copy
            assert (len(found.events), found.state) == (3, {"count": 1, "user:count": 1})

    asyncio.run(scene())


def test_another_event_with_a_known_id_is_refused(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            one = said("one")
            await service.append_event(session, one)
            for other in (said("other", id=one.id, timestamp=one.timestamp), said("later", id=one.id)):
                with pytest.raises(AlreadyExistsError, match=one.id):
                    await service.append_event(session, other)
            assert (await service.get_session(**TRIP)).events == [one]

    asyncio.run(scene())


# -- People.


def test_a_person_can_read_it(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessionService(store_url) as service:
            session = await service.create_session(**TRIP, state={"pier": 3})
            for one in conversation():
                await service.append_event(session, one)

    asyncio.run(scene())
    seen = assert_readable(store_url, ID, user=QUESTION, agent="The 10:40.", word="noon", event="tool_call")
    assert "alice" in seen.ls
    assert "[image/png]" in seen.markdown
    assert "tool_result" in seen.show
    assert "timetable" in seen.show


def test_records_tell_when_the_event_was(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            await service.append_event(session, said("long ago", timestamp=1700000000.25))
            await service.append_event(session, changing(a=1, timestamp=1700000001.5))
            texts = [entry.record.timestamp_text for entry in await store.timeline(ID)]
            assert texts == ["2023-11-14T22:13:20.250Z", "2023-11-14T22:13:21.500Z"]
            found = await service.get_session(**TRIP)
            assert [one.timestamp for one in found.events] == [1700000000.25, 1700000001.5]

    asyncio.run(scene())


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), ([1], [1.0]), ({"a": 1}, {"a": True})])
def test_a_value_that_only_python_takes_for_the_same_is_stored(sqlite_url: str, before: Any, after: Any) -> None:
    async def scene() -> None:
        async with StateStoreSessionService(sqlite_url) as service:
            alice: Any = {"app_name": "ferries", "user_id": "alice"}
            for value in (before, after):
                await service.update_user_state(**alice, change=lambda state, value=value: state.update(flag=value))
            assert repr((await service.get_user_state(**alice))["flag"]) == repr(after)

    asyncio.run(scene())


def test_what_others_wrote_into_the_session_is_seen(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            await service.append_event(session, said("by an agent's user"))
            await store.append(ID, UserMessage("by hand"))
            one = await service.get_session(**TRIP)
            two = await service.get_session(**TRIP, config=GetSessionConfig(num_recent_events=1))
            assert [event.content.parts[0].text for event in one.events] == ["by an agent's user", "by hand"]
            assert one.events[-1] == two.events[-1]
            assert one.events[-1].author == "user"
            await service.append_event(one, said("by the user again"))
            assert len((await service.get_session(**TRIP)).events) == 3

    asyncio.run(scene())


# -- Names.


@pytest.mark.parametrize("odd", ["a/b", "..", "x:y", "%2F", "é東京", "a\0b", "x" * 300, " inner ", ""])
def test_any_text_is_a_name(opened_ours: Opened, odd: str) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            place = {"app_name": odd, "user_id": odd, "session_id": odd.strip() or "s"}
            session = await service.create_session(**place, state={"user:x": 1, "app:y": 2, "z": 3})
            await service.append_event(session, changing(user__x=2))
            found = await service.get_session(**place)
            assert found == session
            assert (found.app_name, found.user_id, found.id) == tuple(place.values())
            others = await service.create_session(app_name=f"{odd}%", user_id=odd)
            assert others.state == {}
            for user_id in (None, odd):
                listed = (await service.list_sessions(app_name=odd, user_id=user_id)).sessions
                assert [(one.id, one.state) for one in listed] == [(session.id, session.state)]
            await service.delete_session(**place)
            assert await service.get_session(**place) is None

    asyncio.run(scene())


def test_blanks_around_an_id_do_not_count(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**{**TRIP, "session_id": "  trip "})
            assert session.id == "trip"
            assert await service.get_session(**{**TRIP, "session_id": " trip"}) == session
            with pytest.raises(AlreadyExistsError):
                await service.create_session(**{**TRIP, "session_id": "trip\n"})
            await service.delete_session(**{**TRIP, "session_id": "trip  "})
            assert await service.get_session(**TRIP) is None
            assert (await service.create_session(**{**TRIP, "session_id": "  "})).id

    asyncio.run(scene())


# -- Listings.


def test_pages_go_through_all_sessions_newest_first(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            for number in range(7):
                await service.create_session(app_name="ferries", user_id="alice", session_id=f"s{number}")
            found: list[str] = []
            cursor = None
            while True:
                page = await service.list_sessions_page(app_name="ferries", user_id="alice", limit=3, after=cursor)
                found += [session.id for session in page.sessions]
                cursor = page.cursor
                if cursor is None:
                    break
            assert found == [f"s{number}" for number in reversed(range(7))]

    asyncio.run(scene())


def test_a_listing_reads_no_events_and_no_state_twice(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from statestore.store.beneath import engine_of

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            for number in range(5):
                session = await service.create_session(
                    app_name="ferries", user_id="alice", session_id=f"s{number}", state={"n": number}
                )
                await service.append_event(session, said("hello"))
            engine, read = engine_of(store), []
            plain = engine.read_session

            async def spied(session_id: str, **options: Any) -> Any:
                read.append((session_id, options))
                return await plain(session_id, **options)

            monkeypatch.setattr(engine, "read_session", spied)
            await service.list_sessions(app_name="ferries")
            assert [options for _, options in read] == [{"last": 0}] * 5
            read.clear()
            await service.append_event(session, said("again"))
            listed = await service.list_sessions(app_name="ferries")
            assert [session_id for session_id, _ in read] == ["ferries:alice:s4"]
            assert [one.state for one in listed.sessions] == [{"n": number} for number in range(5)]

    asyncio.run(scene())


def test_the_newest_events_are_read_and_no_more_although_some_are_told_twice(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from statestore.store.beneath import engine_of

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            for _ in range(10):
                for one in conversation():
                    await service.append_event(session, one)
            engine, read = engine_of(store), []
            plain = engine.read_session

            async def spied(session_id: str, **options: Any) -> Any:
                read.append(options["last"])
                return await plain(session_id, **options)

            monkeypatch.setattr(engine, "read_session", spied)
            found = await service.get_session(**TRIP, config=GetSessionConfig(num_recent_events=5))
            assert found is not None
            assert found.events == session.events[-5:]
            assert read == [5, 10]

    asyncio.run(scene())


def test_a_session_of_another_program_in_the_same_project_is_not_listed(sqlite_url: str) -> None:
    from statestore import Session

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            await service.create_session(**TRIP)
            other = Session("alice", "notes")
            other.project_id = "ferries"
            await store.save_session(other)
            listed = await service.list_sessions(app_name="ferries")
            assert [session.id for session in listed.sessions] == ["trip"]

    asyncio.run(scene())


# -- Bad input, and damage.


@pytest.mark.parametrize("bad", [2**70, {"deep": 2**70}, "\ud800", float("nan")])
def test_what_cannot_be_stored_is_refused_before_anything_is_written(opened_ours: Opened, bad: Any) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP)
            with pytest.raises((InvalidValue, ValueError)):
                await service.append_event(session, changing(good=1, user__good=1, bad=bad))
            with pytest.raises((InvalidValue, ValueError)):
                await service.create_session(**{**TRIP, "session_id": "x"}, state={"user:good": 1, "bad": bad})
            assert (session.events, session.state) == ([], {})
            assert await service.get_session(**TRIP) == session
            assert await service.get_session(**{**TRIP, "session_id": "x"}) is None

    asyncio.run(scene())


def test_bytes_in_the_state_that_are_no_text_are_stored_in_base64(opened_ours: Opened) -> None:
    async def scene() -> None:
        async with opened_ours() as service:
            session = await service.create_session(**TRIP, state={"made": b"\xff"})
            await service.append_event(session, changing(changed=b"\xff", user__changed=b"\xff"))
            found = await service.get_session(**TRIP)
            assert found is not None
            assert found.state == dict.fromkeys(("made", "changed", "user:changed"), "_w==")

    asyncio.run(scene())


def test_an_event_that_cannot_be_read_names_itself_and_hides_no_other(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with StateStoreSessionService(sqlite_url) as service:
            session = await service.create_session(**TRIP)
            for text in ("one", "two", "three"):
                await service.append_event(session, said(text))
        path = sqlite_url.removeprefix("sqlite:")
        _damage(path, b'"author":"user"', b'"author":[1,2,3]')
        async with StateStoreSessionService(sqlite_url) as service:
            with caplog.at_level(logging.WARNING, "statestore"):
                found: Any = await service.get_session(**TRIP)
            assert [event.content.parts[0].text for event in found.events] == ["one", "three"]
            assert any("record 2" in record.getMessage() for record in caplog.records)

    asyncio.run(scene())


def _damage(path: str, old: bytes, new: bytes) -> None:
    """Change the JSON of the second record behind everybody's back."""
    connection = sqlite3.connect(path)
    with connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for column in [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]:
                for (body,) in connection.execute(f"SELECT {column} FROM {table}").fetchall():
                    data = body.encode() if isinstance(body, str) else body
                    if isinstance(data, bytes) and b'{"content":"two"' in data:
                        start = data.rindex(b'{"content":"two"')
                        changed: Any = data[:start] + data[start:].replace(old, new, 1)
                        changed = changed.decode() if isinstance(body, str) else changed
                        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (changed, body))
    connection.close()


# -- The store.


def test_who_opened_the_store_closes_it(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            async with StateStoreSessionService(store) as service:
                await service.create_session(**TRIP)
            assert await store.session_exists(ID)
        own = StateStoreSessionService(sqlite_url)
        assert await own.get_session(**TRIP) is not None
        await own.close()
        with pytest.raises(StoreClosed):
            await own.get_session(**TRIP)

    asyncio.run(scene())


def test_a_plain_store_is_used_in_threads(sqlite_url: str) -> None:
    async def scene() -> None:
        with StateStore.open(sqlite_url) as store:
            service = StateStoreSessionService(store)
            session = await service.create_session(**TRIP)
            for one in [*conversation(), changing(a=1, user__b=2)]:
                await service.append_event(session, one)
            assert await service.get_session(**TRIP) == session
            assert len((await service.list_sessions(app_name="ferries")).sessions) == 1

    asyncio.run(scene())


def test_a_session_that_was_never_made_is_not_found(opened_ours: Opened) -> None:
    from google.adk.sessions.session import Session

    async def scene() -> None:
        async with opened_ours() as service:
            with pytest.raises(SessionNotFoundError):
                await service.append_event(Session(id="x", app_name="a", user_id="u"), said("hello"))

    asyncio.run(scene())


def test_a_wrong_option_is_refused() -> None:
    with pytest.raises(InvalidValue, match="superseded"):
        StateStoreSessionService("memory:", stale_when="never")  # type: ignore[arg-type]
