"""The session store contract of the Claude Agent SDK: its own conformance suite, and what its helpers rely on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk.testing")

from claude_agent_sdk import (
    InMemorySessionStore,
    delete_session_via_store,
    fold_session_summary,
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    list_subagents_from_store,
    project_key_for_directory,
    rename_session_via_store,
    tag_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance

from adapters.conftest import ENGINES, new_url
from statestore.adapters.claude_agent_sdk import StateStoreSessions

SESSION = "5f1c2a34-0d6b-4a8e-9c57-2f0e8b1d7a66"
QUESTION = {
    "type": "user",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "parentUuid": None,
    "sessionId": SESSION,
    "timestamp": "2026-05-01T09:00:00.000Z",
    "message": {"role": "user", "content": "Which ferry arrives before noon?"},
}
ANSWER = {
    "type": "assistant",
    "uuid": "00000000-0000-4000-8000-000000000002",
    "parentUuid": QUESTION["uuid"],
    "sessionId": SESSION,
    "timestamp": "2026-05-01T09:00:01.000Z",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "The 10:40."}]},
}
UNKNOWN = {"type": "a-type-of-tomorrow", "payload": {"deep": [1, 2.5, None, True, "東京", "\u0000"]}, "big": 2**53 + 1}

Make = Callable[[], Any]
"""Makes a store; each has a place of its own."""


@pytest.fixture(params=["theirs", *ENGINES])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    if request.param == "theirs":
        yield InMemorySessionStore
        return
    places: list[Iterator[str]] = []

    def ours() -> StateStoreSessions:
        directory = tmp_path / str(len(places))
        directory.mkdir()
        places.append(new_url(request.param, directory))
        return _Noted(next(places[-1]))

    yield ours
    for place in places:
        next(place, None)


class _Noted(StateStoreSessions):
    """One that `run` closes in the end, whoever made it."""

    opened: list[_Noted] = []

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.opened.append(self)


def run(scene: Any) -> None:
    async def whole() -> None:
        try:
            await scene
        finally:
            while _Noted.opened:
                await _Noted.opened.pop().close()

    asyncio.run(whole())


@pytest.fixture
def project() -> str:
    return project_key_for_directory("/home/alice/island")


def test_the_sdks_own_conformance_suite_passes(make: Make) -> None:
    optional = ("list_sessions", "list_session_summaries", "delete", "list_subkeys")
    assert all(name in dir(make()) for name in optional), "what is absent would count as passed"
    run(run_session_store_conformance(make))


def test_entries_come_back_exactly(make: Make) -> None:
    async def scene() -> None:
        store = make()
        key: Any = {"project_key": "p", "session_id": "s"}
        entries: Any = [QUESTION, ANSWER, UNKNOWN, {"type": "tag", "tag": ""}, {"type": "tag", "tag": ""}]
        await store.append(key, entries)
        loaded = await store.load(key)
        assert loaded == entries
        assert [list(entry) for entry in loaded] == [list(entry) for entry in entries]

    run(scene())


@pytest.mark.parametrize("odd", ["half an emoji \ud83d", "\udcff", 2**70, [[[0]]] * 3 + [2**64]])
def test_an_entry_that_survives_json_survives_the_store(make: Make, odd: Any) -> None:
    async def scene() -> None:
        store = make()
        key: Any = {"project_key": "p", "session_id": "s"}
        message = {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "odd", "odd": odd}]}
        entries: Any = [
            QUESTION,
            {"type": "user", "uuid": "odd", "message": message},
            {"type": "custom-title", "customTitle": odd},
            ANSWER,
        ]
        await store.append(key, entries)
        assert await store.load(key) == entries
        (summary,) = await store.list_session_summaries("p")
        assert summary["data"] == fold_session_summary(None, key, entries)["data"]

    run(scene())


@pytest.mark.parametrize("odd", ["a:b", "a/b", "..", "x" * 300, "naïve 東京", "a%3Ab"])
def test_any_text_is_a_project_a_session_and_a_subpath(make: Make, odd: str) -> None:
    async def scene() -> None:
        store = make()
        main: Any = {"project_key": odd, "session_id": odd}
        sub: Any = {**main, "subpath": f"subagents/{odd}"}
        if "/" in odd and isinstance(store, InMemorySessionStore):
            pytest.skip("theirs takes a session with a slash for a subagent")
        await store.append(main, [QUESTION])
        await store.append(sub, [ANSWER])
        assert await store.load(main) == [QUESTION]
        assert await store.load(sub) == [ANSWER]
        assert [one["session_id"] for one in await store.list_sessions(odd)] == [odd]
        assert [one["session_id"] for one in await store.list_session_summaries(odd)] == [odd]
        assert await store.list_subkeys(main) == [f"subagents/{odd}"]
        await store.delete(main)
        assert await store.load(sub) is None

    run(scene())


def test_the_sdks_helpers_work_on_it(make: Make, project: str) -> None:
    async def scene() -> None:
        store = make()
        where: Any = {"directory": "/home/alice/island"}
        main: Any = {"project_key": project, "session_id": SESSION}
        await store.append(main, [QUESTION, ANSWER])
        await store.append({**main, "subpath": "subagents/agent-7"}, [{**QUESTION, "isSidechain": True}])
        assert [one.summary for one in await list_sessions_from_store(store, **where)] == [
            "Which ferry arrives before noon?"
        ]
        await rename_session_via_store(store, SESSION, "The island", **where)
        await tag_session_via_store(store, SESSION, "travel", **where)
        (info,) = await list_sessions_from_store(store, **where)
        assert (info.summary, info.tag) == ("The island", "travel")
        assert info.first_prompt == "Which ferry arrives before noon?"
        assert [one.type for one in await get_session_messages_from_store(store, SESSION, **where)] == [
            "user",
            "assistant",
        ]
        assert await list_subagents_from_store(store, SESSION, **where) == ["7"]
        forked = await fork_session_via_store(store, SESSION, **where)
        assert len(await list_sessions_from_store(store, **where)) == 2
        await delete_session_via_store(store, SESSION, **where)
        assert [one.session_id for one in await list_sessions_from_store(store, **where)] == [forked.session_id]

    run(scene())
