"""The stream of the example's chat backend: a browser that reconnects misses nothing, and has nothing twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adapters.running import loaded
from statestore import AgentResponse, AsyncStateStore, CursorExpired, Event, SessionNotFound, UserMessage
from statestore.engines.sqlite import SqliteEngine


class Browser:
    """What somebody who follows a chat has on the screen, by number."""

    def __init__(self, store: AsyncStateStore) -> None:
        self._backend = loaded("chat_backend").Backend(store)
        self._events: AsyncGenerator[str] | None = None
        self._last = 0
        self.shown: dict[int, str] = {}

    async def sees(self, *names: str) -> None:
        """The next events have these names. If there is no connection, there is a new one, after the last id."""
        self._events = self._events or self._backend.stream("alice", "chat", self._last)
        assert [self._taken(await anext(self._events)) for _ in names] == list(names)

    async def loses_connection(self) -> None:
        assert self._events is not None
        await self._events.aclose()
        self._events = None

    def _taken(self, event: str) -> str:
        number, name, data = (line.partition(": ")[2] for line in event.rstrip().splitlines())
        self._last = int(number)
        if name == "rewound":
            self.shown = {seen: text for seen, text in self.shown.items() if seen <= self._last}
        elif name != "deleted":
            assert self._last not in self.shown
            self.shown[self._last] = json.loads(data)
        return name


async def begun(store: AsyncStateStore) -> Browser:
    """A browser that has seen what there is of a chat."""
    await store.get_or_create_session("alice", "chat")
    await store.append("chat", UserMessage("one"), Event("tool_call", {}), AgentResponse("two"))
    browser = Browser(store)
    await browser.sees("user", "agent")
    assert browser.shown == {1: "one", 3: "two"}
    return browser


def test_a_browser_resumes_after_more_changes_than_are_kept(tmp_path: Path) -> None:
    async def story(engine: SqliteEngine) -> None:
        async with AsyncStateStore.open(engine) as store:
            browser = await begun(store)
            await browser.loses_connection()
            cursor = await store.change_cursor()
            await store.get_or_create_session("bob", "busy")
            for _ in range(1100):  # old changes are removed every few hundred commits
                await store.append("busy", UserMessage("meanwhile"))
            with pytest.raises(CursorExpired):
                await anext(store.watch("chat", after=cursor))
            await store.append("chat", UserMessage("three"), AgentResponse("four"), UserMessage("five"))
            await browser.sees("user", "agent", "user")
            assert browser.shown == {1: "one", 3: "two", 4: "three", 5: "four", 6: "five"}
            await browser.loses_connection()

    asyncio.run(story(SqliteEngine(tmp_path / "state.db", changes_kept=10, durability="relaxed")))


def test_a_browser_that_waits_is_told_of_all_that_happens(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncStateStore.open(tmp_path / "state.db") as store:
            browser = await begun(store)
            waiting = asyncio.create_task(browser.sees("user", "agent"))
            await asyncio.sleep(0.1)  # until it has what there was, and watches
            await store.append("chat", UserMessage("three"), Event("tool_call", {}), AgentResponse("four"))
            await waiting
            await store.rewind_session("chat", to=3)
            await store.append("chat", AgentResponse("another"))
            await browser.sees("rewound", "agent")
            assert browser.shown == {1: "one", 3: "two", 7: "another"}
            await store.delete_session("chat")
            await browser.sees("deleted")
            with pytest.raises(StopAsyncIteration):
                await browser.sees("user")
            await browser.loses_connection()
            with pytest.raises(SessionNotFound):
                await browser.sees("user")

    asyncio.run(story())


@pytest.mark.parametrize("to", [0, 1, 2])
def test_a_browser_that_was_away_drops_what_was_taken_back(tmp_path: Path, to: int) -> None:
    async def story() -> None:
        async with AsyncStateStore.open(tmp_path / "state.db") as store:
            browser = await begun(store)
            await browser.loses_connection()
            await store.rewind_session("chat", to=to)
            await store.append("chat", AgentResponse("another"))
            await browser.sees("rewound", "agent")
            assert browser.shown == ({1: "one"} if to else {}) | {4: "another"}
            await browser.loses_connection()

    asyncio.run(story())


def test_what_is_taken_back_while_a_browser_catches_up_is_told_before_what_followed(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncStateStore.open(tmp_path / "state.db") as store:
            browser = await begun(store)  # and has not asked for what comes after that
            await store.rewind_session("chat", to=1)
            await store.append("chat", AgentResponse("another"))
            await browser.sees("agent", "rewound", "agent")
            assert browser.shown == {1: "one", 4: "another"}
            await browser.loses_connection()

    asyncio.run(story())


def test_what_is_said_while_a_browser_catches_up_comes_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with AsyncStateStore.open(tmp_path / "state.db") as store:
            browser = await begun(store)
            await store.append("chat", UserMessage("three"))
            waiting = asyncio.create_task(browser.sees("user", "agent"))
            await asyncio.sleep(0.1)
            await store.append("chat", AgentResponse("four"))
            await waiting
            assert browser.shown == {1: "one", 3: "two", 4: "three", 5: "four"}
            await browser.loses_connection()

    asyncio.run(story())
