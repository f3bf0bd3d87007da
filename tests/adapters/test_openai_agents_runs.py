"""Whole runs of the OpenAI Agents SDK, with a scripted model: first on its own SQLiteSession, then on ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings

from adapters.conftest import ENGINES, new_url
from adapters.running import loaded
from statestore import AsyncStateStore
from statestore.adapters.openai_agents import StateStoreSession

example = loaded("openai_agents")
QUIET = RunConfig(tracing_disabled=True)
TURN = ("timetable", '{"before": "12:00"}'), "The 10:40."


@pytest.fixture(params=["theirs", *ENGINES])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "theirs":
        theirs = SQLiteSession("trip", tmp_path / "theirs.db")
        yield theirs
        theirs.close()
        return
    for url in new_url(request.param, tmp_path):
        yield StateStoreSession("trip", url)


async def _closed(session: Any) -> None:
    if isinstance(session, StateStoreSession):
        await session.close()


def _agent(*script: Any) -> tuple[Any, Any]:
    model = example.ScriptedModel(*script)
    return Agent(name="Skipper", tools=[example.timetable], model=model), model


def test_a_run_remembers_the_one_before(session: Any) -> None:
    async def scene() -> None:
        agent, model = _agent(*TURN, "Booked.")
        await Runner.run(agent, "Which ferry?", session=session, run_config=QUIET)
        result = await Runner.run(agent, "Book it.", session=session, run_config=QUIET)
        assert result.final_output == "Booked."
        items = await session.get_items()
        assert [item.get("role") or item["type"] for item in items] == [
            "user",
            "function_call",
            "function_call_output",
            "assistant",
            "user",
            "assistant",
        ]
        assert [item.get("role") or item["type"] for item in model.inputs[-1]] == [
            item.get("role") or item["type"] for item in items[:-1]
        ]
        await _closed(session)

    asyncio.run(scene())


def test_a_run_with_a_limit_sees_the_latest_items(session: Any) -> None:
    async def scene() -> None:
        agent, model = _agent("One.", "Two.", "Three.")
        for question in ("1?", "2?"):
            await Runner.run(agent, question, session=session, run_config=QUIET)
        limited = RunConfig(tracing_disabled=True, session_settings=SessionSettings(limit=2))
        await Runner.run(agent, "3?", session=session, run_config=limited)
        assert len(model.inputs[-1]) == 3
        assert len(await session.get_items()) == 6
        await _closed(session)

    asyncio.run(scene())


def test_a_correction_takes_the_last_question_back(session: Any) -> None:
    async def scene() -> None:
        agent, model = _agent("Four.", "Six.")
        await Runner.run(agent, "What is 2 + 2?", session=session, run_config=QUIET)
        await session.pop_item()
        await session.pop_item()
        await Runner.run(agent, "What is 2 + 4?", session=session, run_config=QUIET)
        assert [item.get("content") for item in model.inputs[-1]] == ["What is 2 + 4?"]
        await _closed(session)

    asyncio.run(scene())


class _Compactor:
    """Stands in for the client whose server makes one item of many."""

    def __init__(self) -> None:
        self.responses = self

    async def compact(self, **_: Any) -> Any:
        return SimpleNamespace(output=[{"type": "compaction", "encrypted_content": "short"}], usage=None)


def test_a_long_history_is_compacted(session: Any) -> None:
    async def scene() -> None:
        compacting = OpenAIResponsesCompactionSession("trip", session, client=_Compactor())  # pyright: ignore[reportArgumentType]
        await session.add_items(
            [{"role": "user", "content": "Which ferry?"}, {"role": "assistant", "content": "10:40"}]
        )
        await compacting.run_compaction({"force": True, "compaction_mode": "input"})
        assert await session.get_items() == [{"type": "compaction", "encrypted_content": "short"}]
        await _closed(session)

    asyncio.run(scene())


@pytest.mark.skipif(
    "_atomic_replace_items" not in getsource(OpenAIResponsesCompactionSession), reason="the SDK clears, then adds"
)
def test_compaction_is_one_commit_and_leaves_the_title(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from statestore.store.beneath import engine_of

    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            session = StateStoreSession("trip", store)
            await session.add_items([{"role": "user", "content": f"question {number}"} for number in range(20)])
            await store.update_session_with("trip", lambda one: one.set_metadata("title", "Island"))
            engine, batches = engine_of(store), []
            plain = engine.commit

            async def spied(batch: Any) -> Any:
                batches.append(batch)
                return await plain(batch)

            monkeypatch.setattr(engine, "commit", spied)
            compacting = OpenAIResponsesCompactionSession("trip", session, client=_Compactor())  # pyright: ignore[reportArgumentType]
            await compacting.run_compaction({"force": True, "compaction_mode": "input"})
            assert len(batches) == 1
            assert await session.get_items() == [{"type": "compaction", "encrypted_content": "short"}]
            (summary,) = await store.list_sessions()
            assert summary.title == "Island"

    asyncio.run(scene())


def test_two_runners_on_one_session_lose_nothing(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:

            async def talk(name: str) -> None:
                agent, _ = _agent(*(f"{name} {n}" for n in range(10)))
                session = StateStoreSession("trip", store)
                for n in range(10):
                    await Runner.run(agent, f"{name} {n}?", session=session, run_config=QUIET)

            await asyncio.gather(talk("a"), talk("b"))
            loaded = await store.load_session("trip")
            assert loaded is not None
            assert sorted(message.content for message in loaded.user_messages) == sorted(
                f"{name} {n}?" for name in "ab" for n in range(10)
            )
            assert len(loaded.agent_responses) == 20

    asyncio.run(scene())
