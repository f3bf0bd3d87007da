"""LangChain's chat message history: first on its own implementations, then on ours."""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from adapters.conftest import ENGINES, new_url
from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.writers import write_langchain_messages
from statestore import AsyncStateStore, Event, InvalidValue, NotSupported, StateStore
from statestore.adapters.langchain import StateStoreChatMessageHistory

CALLING = AIMessage(
    "Let me look.", tool_calls=[{"name": "timetable", "args": {"before": "12:00"}, "id": "call_1", "type": "tool_call"}]
)
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be short."),
    HumanMessage("Which ferry arrives before noon?", id="h1", additional_kwargs={"from": "phone"}),
    CALLING,
    ToolMessage("10:40, 11:15", tool_call_id="call_1", name="timetable", artifact={"rows": [1, 2]}),
    AIMessage("", tool_calls=[{"name": "book", "args": {}, "id": "call_2", "type": "tool_call"}]),
    AIMessage([{"type": "text", "text": "The 10:40."}, {"type": "thinking", "thinking": "…"}], id="a1"),
    HumanMessage([{"type": "text", "text": "And this?"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
    ChatMessage("Mind the gap.", role="captain"),
    AIMessageChunk("東京"),
]


@pytest.fixture(params=["theirs", *ENGINES])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseChatMessageHistory]:
    if request.param == "theirs":
        yield _theirs(tmp_path)
        return
    for url in new_url(request.param, tmp_path):
        ours = StateStoreChatMessageHistory("trip", url)
        yield ours
        ours.close()


def _theirs(tmp_path: Path) -> BaseChatMessageHistory:
    pytest.importorskip("langchain_community")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langchain_community.chat_message_histories import FileChatMessageHistory

        return FileChatMessageHistory(str(tmp_path / "theirs.json"))


def test_messages_come_back_as_they_were(history: BaseChatMessageHistory) -> None:
    assert history.messages == []
    history.add_messages(MESSAGES[:2])
    history.add_messages(MESSAGES[2:])
    assert history.messages == MESSAGES
    assert [type(message) for message in history.messages] == [type(message) for message in MESSAGES]


def test_the_short_ways_to_add_do_the_same(history: BaseChatMessageHistory) -> None:
    history.add_user_message("Hello")
    history.add_ai_message("Good morning")
    history.add_message(SystemMessage("Be short."))
    assert history.messages == [HumanMessage("Hello"), AIMessage("Good morning"), SystemMessage("Be short.")]
    assert str(history) == "Human: Hello\nAI: Good morning\nSystem: Be short."


def test_clear_leaves_nothing_and_the_history_can_go_on(history: BaseChatMessageHistory) -> None:
    history.clear()
    history.add_messages(MESSAGES)
    history.clear()
    assert history.messages == []
    history.add_messages(MESSAGES[:1])
    assert history.messages == MESSAGES[:1]


def test_the_asynchronous_methods_do_the_same(history: BaseChatMessageHistory) -> None:
    async def scene() -> None:
        assert await history.aget_messages() == []
        await history.aadd_messages(MESSAGES)
        assert await history.aget_messages() == MESSAGES
        await history.aclear()
        assert await history.aget_messages() == []

    asyncio.run(scene())


@pytest.mark.parametrize("bad", [b"bytes", {1}, object()])
def test_what_is_not_json_is_refused_and_nothing_is_written(history: BaseChatMessageHistory, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        history.add_messages([ToolMessage("x", tool_call_id="1", artifact=bad)])
    assert history.messages == []


# -- What ours promises beyond the contract.


def test_what_is_no_message_is_refused_and_nothing_is_written(sqlite_url: str) -> None:
    history = StateStoreChatMessageHistory("s", sqlite_url)
    bad: Any = ["a"]
    with pytest.raises(InvalidValue, match="nothing was stored"):
        history.add_messages([HumanMessage("fine"), *bad])
    assert history.messages == []
    history.close()


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_langchain_messages, store_url)
    history = StateStoreChatMessageHistory("contest", store_url)
    said = [str(message.content) for message in history.messages]
    history.close()
    assert len(said) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]


def test_a_person_can_read_it(store_url: str) -> None:
    history = StateStoreChatMessageHistory("trip", store_url, user_id="alice")
    history.add_messages(MESSAGES[1:6])
    history.close()
    seen = assert_readable(
        store_url, "trip", user="Which ferry arrives before noon?", agent="The 10:40.", word="ferry", event="tool_call"
    )
    assert "timetable" in seen.show
    assert "10:40, 11:15" in seen.show


def test_one_message_is_not_written_if_its_neighbour_cannot_be(sqlite_url: str) -> None:
    history = StateStoreChatMessageHistory("trip", sqlite_url)
    with pytest.raises(InvalidValue):
        history.add_messages([MESSAGES[0], HumanMessage("x", additional_kwargs={"bad": b""})])
    assert history.messages == []
    history.close()


def test_what_a_later_langchain_wrote_stays_and_hides_no_other(
    sqlite_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with StateStore.open(sqlite_url) as store:
        history = StateStoreChatMessageHistory("trip", store)
        history.add_messages(MESSAGES[:2])
        unknown = {"type": "of_tomorrow", "data": {"content": "?"}}
        store.append("trip", Event("of_tomorrow", unknown, extra={"langchain": True}))
        history.add_messages(MESSAGES[2:3])
        with caplog.at_level(logging.WARNING, "statestore"):
            assert history.messages == MESSAGES[:3]
        assert "of_tomorrow" in caplog.text
        assert store.timeline("trip")[2].record.extra == {"langchain": True}


def test_an_asynchronous_store_serves_both_kinds_of_methods(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            history = StateStoreChatMessageHistory("trip", store)
            await history.aadd_messages(MESSAGES[:2])
            await asyncio.to_thread(history.add_messages, MESSAGES[2:3])
            assert await asyncio.to_thread(lambda: history.messages) == MESSAGES[:3]
            with pytest.raises(NotSupported, match="asynchronous twin"):
                _ = history.messages

    asyncio.run(scene())


def test_nothing_blocks_the_loop(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[int] = set()
    with StateStore.open(sqlite_url) as store:
        _note_threads(store, threads, monkeypatch)
        history = StateStoreChatMessageHistory("trip", store)

        async def scene() -> None:
            await history.aadd_messages(MESSAGES)
            await history.aget_messages()
            await history.aclear()

        asyncio.run(scene())
    assert threads
    assert threading.get_ident() not in threads


def _note_threads(store: StateStore, threads: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    engine: Any = store._store._engine

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            threads.add(threading.get_ident())
            return method(*arguments, **options)

        return call

    for name in ("commit", "read_session"):
        monkeypatch.setattr(engine, name, noting(getattr(engine, name)), raising=False)
