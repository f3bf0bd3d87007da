"""The session contract of the OpenAI Agents SDK: first on its own SQLiteSession, then on ours."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import SQLiteSession
from agents.memory import Session, SessionSettings

from adapters.conftest import ENGINES, new_url
from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.writers import write_openai_items
from statestore import AsyncStateStore, Event, InvalidValue, StateStore, StoreClosed, UserMessage, WrongUser
from statestore.adapters.openai_agents import StateStoreSession

USER = {"role": "user", "content": "Which ferry arrives before noon?"}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "A timetable helps."}]}
CALL = {"type": "function_call", "call_id": "call_1", "name": "timetable", "arguments": '{"before":"12:00"}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "10:40, 11:15"}
ANSWER = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "The 10:40.", "annotations": [], "logprobs": []}],
}
PICTURE = {
    "role": "user",
    "content": [
        {"type": "input_text", "text": "And this pier?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
    ],
}
UNKNOWN = {"type": "a_type_of_tomorrow", "payload": {"deep": [1, 2.5, None, True, "東京", "\u0000"]}, "big": 2**53 + 1}
ITEMS: list[Any] = [
    {"role": "developer", "content": "Be short."},
    USER,
    REASONING,
    CALL,
    RESULT,
    ANSWER,
    PICTURE,
    UNKNOWN,
    {"role": "user", "content": ""},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]},
]

Make = Callable[..., Any]
"""Makes a session for an id; all that it makes share one place."""


@pytest.fixture(params=["theirs", *ENGINES])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    if request.param == "theirs":
        yield lambda session_id="trip", **options: SQLiteSession(session_id, tmp_path / "theirs.db", **options)
        return
    for url in new_url(request.param, tmp_path):
        yield partial(_ours, url)


@pytest.fixture
def ours(sqlite_url: str) -> Make:
    return partial(_ours, sqlite_url)


def _ours(url: str, session_id: str = "trip", **options: Any) -> StateStoreSession:
    return StateStoreSession(session_id, url, **options)


@asynccontextmanager
async def closing(*sessions: Any) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for session in sessions:
            closed = session.close()
            if closed is not None:
                await closed


def test_it_is_a_session(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            assert isinstance(session, Session)
            assert session.session_id == "trip"
            assert session.session_settings == SessionSettings()

    asyncio.run(scene())


def test_items_come_back_exactly_and_in_order(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            assert await session.get_items() == []
            await session.add_items(ITEMS[:1])
            await session.add_items(ITEMS[1:])
            items = await session.get_items()
            assert items == ITEMS
            assert [list(item) for item in items] == [list(item) for item in ITEMS]

    asyncio.run(scene())


def test_a_limit_gives_the_latest_items_in_order(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            await session.add_items(ITEMS)
            for limit in (1, 3, len(ITEMS), len(ITEMS) + 5):
                assert await session.get_items(limit) == ITEMS[-limit:]
            assert await session.get_items(0) == []
            assert await session.get_items(-1) == ITEMS

    asyncio.run(scene())


def test_settings_give_the_limit_unless_the_caller_does(make: Make) -> None:
    async def scene() -> None:
        session = make(session_settings=SessionSettings(limit=2))
        async with closing(session):
            await session.add_items(ITEMS)
            assert await session.get_items() == ITEMS[-2:]
            assert await session.get_items(4) == ITEMS[-4:]

    asyncio.run(scene())


def test_pop_takes_the_latest_item_away(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            assert await session.pop_item() is None
            await session.add_items(ITEMS)
            for item in reversed(ITEMS):
                assert await session.pop_item() == item
            assert await session.pop_item() is None
            await session.add_items([USER])
            assert await session.get_items() == [USER]

    asyncio.run(scene())


def test_clear_leaves_nothing_and_the_session_can_go_on(make: Make) -> None:
    async def scene() -> None:
        session, other = make(), make("other")
        async with closing(session, other):
            await session.clear_session()
            await session.add_items(ITEMS)
            await other.add_items([USER])
            await session.clear_session()
            assert await session.get_items() == []
            assert await other.get_items() == [USER]
            await session.add_items([ANSWER])
            assert await session.get_items() == [ANSWER]

    asyncio.run(scene())


def test_another_object_sees_what_was_added(make: Make) -> None:
    async def scene() -> None:
        one = make()
        async with closing(one):
            await one.add_items([USER])
            two = make()
            async with closing(two):
                await two.add_items([ANSWER])
                assert await one.get_items() == [USER, ANSWER] == await two.get_items()

    asyncio.run(scene())


def test_adding_nothing_is_no_error(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            await session.add_items([])
            assert await session.get_items() == []

    asyncio.run(scene())


@pytest.mark.parametrize("bad", [b"bytes", {1, 2}, object(), asyncio])
def test_what_is_not_json_is_refused_and_nothing_is_written(make: Make, bad: Any) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            with pytest.raises((TypeError, ValueError)):
                await session.add_items([USER, {"role": "user", "content": bad}])
            assert await session.get_items() == []

    asyncio.run(scene())


@pytest.mark.parametrize("bad", ["Hello", USER, [USER, "Hello"], [1], [None]], ids=str)
def test_what_are_no_items_is_refused_and_nothing_is_written(ours: Make, bad: Any) -> None:
    async def scene() -> None:
        session = ours()
        async with closing(session):
            with pytest.raises(InvalidValue, match="nothing was stored"):
                await session.add_items(bad)
            assert await session.get_items() == []

    asyncio.run(scene())


def test_many_tasks_lose_nothing(make: Make) -> None:
    async def scene() -> None:
        session = make()
        async with closing(session):
            await asyncio.gather(*(session.add_items([{"role": "user", "content": str(n)}]) for n in range(50)))
            assert sorted(int(item["content"]) for item in await session.get_items()) == list(range(50))
            popped = await asyncio.gather(*(session.pop_item() for _ in range(20)))
            left = await session.get_items()
            assert sorted(int(item["content"]) for item in [*popped, *left]) == list(range(50))
            assert len(left) == 30

    asyncio.run(scene())


@pytest.mark.parametrize("session_id", ["team/alice", "..", "", "x" * 300, "a%2Fb", "naïve 東京"])
def test_any_text_is_a_session_id(make: Make, session_id: str) -> None:
    async def scene() -> None:
        session, other = make(session_id), make(session_id + "/")
        async with closing(session, other):
            await session.add_items([USER])
            await other.add_items([ANSWER])
            assert await session.get_items() == [USER]

    asyncio.run(scene())


# -- What ours promises beyond the contract.


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_openai_items, store_url)

    async def scene() -> list[Any]:
        async with StateStoreSession("contest", store_url) as session:
            return await session.get_items()

    said = [item["content"] for item in asyncio.run(scene())]
    assert len(said) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]


def test_pops_and_adds_at_once_lose_nothing(store_url: str) -> None:
    async def scene() -> None:
        one, two = StateStoreSession("s", store_url), StateStoreSession("s", store_url)
        async with closing(one, two):
            await one.add_items([{"role": "user", "content": f"first {n}"} for n in range(20)])
            done = await asyncio.gather(
                *(one.pop_item() for _ in range(10)),
                *(two.add_items([{"role": "user", "content": f"second {n}"}]) for n in range(10)),
            )
            popped = [item["content"] for item in done if item]
            left = [item["content"] for item in await one.get_items()]
            assert len(popped) == 10
            assert sorted(popped + left) == sorted(
                [f"first {n}" for n in range(20)] + [f"second {n}" for n in range(10)]
            )

    asyncio.run(scene())


def test_a_person_can_read_it(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSession("trip", store_url, user_id="alice") as session:
            await session.add_items(ITEMS[1:6])

    asyncio.run(scene())
    seen = assert_readable(store_url, "trip", user=USER["content"], agent="The 10:40.", word="ferry", event="tool_call")
    assert "alice" in seen.ls
    assert "timetable" in seen.show
    assert "tool_result" in seen.show


def test_a_users_session_is_not_anothers(ours: Make) -> None:
    async def scene() -> None:
        alices, bobs = ours(user_id="alice"), ours(user_id="bob")
        async with closing(alices, bobs):
            await alices.add_items([USER])
            assert await bobs.get_items() == []
            assert await bobs.pop_item() is None
            await bobs.clear_session()
            with pytest.raises(WrongUser):
                await bobs.add_items([ANSWER])
            assert await alices.get_items() == [USER]

    asyncio.run(scene())


def test_a_lent_store_stays_open_and_one_from_a_url_is_closed(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            lent = StateStoreSession("trip", store, metadata={"title": "On the island"})
            await lent.add_items([USER])
            await lent.close()
            (summary,) = await store.list_sessions()
            assert summary.title == "On the island"
            loaded = await store.load_session("trip")
            assert loaded is not None
            assert loaded.metadata["framework"] == "openai-agents"
        own = StateStoreSession("trip", sqlite_url)
        assert await own.get_items() == [USER]
        await own.close()
        with pytest.raises(StoreClosed):
            await own.get_items()
        never_used = StateStoreSession("trip", sqlite_url)
        await never_used.close()

    asyncio.run(scene())


def test_a_plain_store_serves_too(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        session = StateStoreSession("trip", store)

        async def scene() -> list[Any]:
            await session.add_items(ITEMS)
            return await session.get_items()

        assert asyncio.run(scene()) == ITEMS


def test_what_others_wrote_is_read_and_taken_back(ours: Make, sqlite_url: str) -> None:
    async def scene() -> None:
        session = ours()
        async with closing(session), AsyncStateStore.open(sqlite_url) as store:
            await session.add_items([USER, ANSWER])
            await store.append("trip", UserMessage("From the command line."))
            foreign = {"role": "user", "content": "From the command line."}
            assert await session.get_items() == [USER, ANSWER, foreign]
            assert await session.get_items(1) == [foreign]
            assert await session.pop_item() == foreign
            assert await session.pop_item() == ANSWER
            assert await session.get_items() == [USER]

    asyncio.run(scene())


def test_a_session_that_is_deleted_while_it_is_read_has_no_items(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            session = StateStoreSession("trip", store)
            await session.add_items([USER])
            await store.append("trip", UserMessage("From the command line."))
            plain = store.timeline_as

            async def overtaken(*arguments: Any, **options: Any) -> Any:
                found = await plain(*arguments, **options)
                await store.delete_session("trip")
                return found

            monkeypatch.setattr(store, "timeline_as", overtaken)
            assert await session.get_items() == []

    asyncio.run(scene())


def test_a_limit_counts_items_not_what_lies_between(ours: Make, sqlite_url: str) -> None:
    async def scene() -> None:
        session = ours()
        async with closing(session), AsyncStateStore.open(sqlite_url) as store:
            await session.add_items([USER, ANSWER])
            await store.append("trip", *(Event("note", n) for n in range(20)))
            assert await session.get_items(2) == [USER, ANSWER]

    asyncio.run(scene())


def test_a_corrupt_item_names_itself_and_hides_no_other(
    ours: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        session = ours()
        async with closing(session):
            await session.add_items([USER, ANSWER, CALL])
            with sqlite3.connect(tmp_path / "state.db") as database:
                database.execute("UPDATE records SET body = '{torn' WHERE place & 0xffffffff = 2")
            database.close()
            with caplog.at_level(logging.WARNING, "statestore"):
                assert await session.get_items() == [USER, CALL]
            assert "session trip: record 2 cannot be read" in caplog.text

    asyncio.run(scene())


def test_a_limit_reads_no_more_than_it_must(ours: Make) -> None:
    async def scene() -> None:
        session = ours()
        async with closing(session):
            await session.add_items([{"role": "user", "content": "x" * 1000} for _ in range(3000)])
            read: list[int] = []

            async def spied(store: AsyncStateStore) -> None:
                original = store.timeline_as

                async def counting(*arguments: Any, **options: Any) -> Any:
                    found = await original(*arguments, **options)
                    read.append(len(found))
                    return found

                store.timeline_as = counting  # pyright: ignore[reportAttributeAccessIssue]

            await session._access.run(spied)
            assert len(await session.get_items(5)) == 5
            assert read == [5]

    asyncio.run(scene())
