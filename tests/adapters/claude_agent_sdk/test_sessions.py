"""What ours promises beyond the contract: idempotency, many writers, people who read, users, damage."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk")

from claude_agent_sdk import fold_session_summary

from adapters.claude_agent_sdk.test_contract import ANSWER, QUESTION, UNKNOWN
from adapters.claude_agent_sdk.writers import KEY, write_entries
from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.running import output_of
from statestore import (
    AsyncStateStore,
    InvalidValue,
    StateStore,
    StateStoreError,
    StoreClosed,
    StoreUnavailable,
    WrongUser,
)
from statestore.adapters.claude_agent_sdk import StateStoreSessions
from statestore.adapters.claude_agent_sdk.summaries import SUMMARY
from statestore.adapters.dialects.claude_agent_sdk import records_of
from statestore.adapters.handoff import messages_for, turns_in
from statestore.adapters.turns import Said, ToolCall, ToolResult
from statestore.records import kind_of

MAIN: Any = {"project_key": "-home-alice-island", "session_id": "trip"}
SUB: Any = {**MAIN, "subpath": "subagents/agent-7"}
TRIP = "trip:-home-alice-island"
LOOK: Any = {
    "type": "assistant",
    "uuid": "u3",
    "message": {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "A timetable helps.", "signature": "x"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "timetable", "input": {"before": "12:00"}},
        ],
    },
}
RESULT: Any = {
    "type": "user",
    "uuid": "u4",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "10:40"}]},
}
ENTRIES: Any = [QUESTION, LOOK, RESULT, ANSWER]


def test_an_entry_that_is_sent_again_is_not_stored_twice(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessions(store_url) as sessions:
            await sessions.append(MAIN, ENTRIES[:2])
            await sessions.append(MAIN, ENTRIES)
            await sessions.append(MAIN, [*ENTRIES, *ENTRIES, {**UNKNOWN, "uuid": "long" * 300}])
            await sessions.append(MAIN, [{**UNKNOWN, "uuid": "long" * 300}])
            assert await sessions.load(MAIN) == [*ENTRIES, {**UNKNOWN, "uuid": "long" * 300}]

    asyncio.run(scene())


def test_a_batch_whose_title_could_not_be_given_may_be_sent_again(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            sessions = StateStoreSessions(store)
            await sessions.append(MAIN, [QUESTION])
            entries: Any = [{"type": "custom-title", "customTitle": "Island"}, ANSWER]

            async def failing(*_: Any, **__: Any) -> None:
                raise StoreUnavailable("the server is away")

            with monkeypatch.context() as patch, pytest.raises(StoreUnavailable):
                patch.setattr(store, "update_session_with", failing)
                await sessions.append(MAIN, entries)
            await sessions.append(MAIN, entries)
            assert await sessions.load(MAIN) == [QUESTION, *entries]

    asyncio.run(scene())


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_entries, store_url)

    async def scene() -> tuple[Any, Any]:
        async with StateStoreSessions(store_url) as sessions:
            return await sessions.load(KEY), await sessions.list_session_summaries(KEY["project_key"])

    entries, (summary,) = asyncio.run(scene())
    uuids = [entry["uuid"] for entry in entries]
    assert len(uuids) == len(set(uuids)) == 2 * WRITES + WRITES // 10
    for name in ("a", "b"):
        assert [one for one in uuids if one.startswith(f"{name}-")] == [f"{name}-{n}" for n in range(WRITES)]
    assert summary["data"] == fold_session_summary(None, KEY, entries)["data"]


def test_a_person_can_read_it(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessions(store_url, user_id="alice") as sessions:
            await sessions.append(MAIN, ENTRIES)
            await sessions.append(MAIN, [{"type": "custom-title", "customTitle": "A day on the island"}])

    asyncio.run(scene())
    asked = QUESTION["message"]["content"]  # pyright: ignore[reportArgumentType, reportCallIssue]
    seen = assert_readable(store_url, TRIP, user=asked, agent="The 10:40.", word="ferry", event="tool_call")
    assert "alice" in seen.ls
    assert "A day on the island" in seen.ls
    assert "timetable" in seen.show


def test_a_subagents_session_is_a_child_and_a_project_is_a_project(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            sessions = StateStoreSessions(store)
            await sessions.append(SUB, [QUESTION])  # before its parent
            await sessions.append(MAIN, [QUESTION])
            assert [one.id for one in await store.list_sessions(top_level=True)] == [TRIP]
            (child,) = await store.list_sessions(parent_session_id=TRIP)
            assert child.project_id == "-home-alice-island"
            loaded = await store.load_session(TRIP)
            assert loaded is not None
            assert loaded.metadata["framework"] == "claude-agent-sdk"

    asyncio.run(scene())


def test_a_summary_reads_only_what_is_new_and_is_right_after_a_rewind(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            sessions = StateStoreSessions(store)

            async def folded() -> Any:
                entries = await sessions.load(MAIN)
                assert entries is not None
                return fold_session_summary(None, MAIN, entries)["data"]

            async def told() -> Any:
                (summary,) = await sessions.list_session_summaries(MAIN["project_key"])
                return summary["data"]

            await sessions.append(MAIN, [QUESTION])
            assert await told() == await folded()
            for title in ("one", "two"):
                await sessions.append(MAIN, [{"type": "custom-title", "customTitle": title}])
                assert await told() == await folded()
            await store.rewind_session(TRIP, to=2)
            assert (await told())["custom_title"] == "one"
            await store.rewind_session(TRIP, to=1)
            await sessions.append(MAIN, [{"type": "custom-title", "customTitle": "three"}])
            assert await told() == await folded()
            await store.update_session_with(TRIP, lambda session: session.set_metadata(SUMMARY, None))
            assert await told() == await folded()

    asyncio.run(scene())


def test_a_summary_that_cannot_be_read_is_made_anew(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            sessions = StateStoreSessions(store)
            await sessions.append(MAIN, [QUESTION])
            first = await sessions.list_session_summaries(MAIN["project_key"])
            for kept in ("of tomorrow", ["", 0], None):
                await store.update_session_with(TRIP, lambda session, kept=kept: session.set_metadata(SUMMARY, kept))
                (again,) = await StateStoreSessions(store).list_session_summaries(MAIN["project_key"])
                assert again["data"] == first[0]["data"]

    asyncio.run(scene())


def test_another_process_need_not_read_a_transcript_to_summarize_it(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(store_url) as store:
            for number in range(70):
                key: Any = {**MAIN, "session_id": str(number)}
                await StateStoreSessions(store).append(key, ENTRIES)
            first = await StateStoreSessions(store).list_session_summaries(MAIN["project_key"])

            async def reading(*_: Any, **__: Any) -> Any:
                raise AssertionError("a transcript is read")

            monkeypatch.setattr(store, "timeline_as", reading)
            again = await StateStoreSessions(store).list_session_summaries(MAIN["project_key"])
            assert again == first
            assert len(again) == 70

    asyncio.run(scene())


def test_a_listing_changes_nothing_that_others_see(store_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(store_url) as store:
            sessions = StateStoreSessions(store)
            await sessions.append(MAIN, ENTRIES)
            before = await sessions.list_sessions(MAIN["project_key"])
            loaded = await store.load_session(TRIP)
            assert loaded is not None
            loaded.add_user_message("And back?")
            (summary,) = await sessions.list_session_summaries(MAIN["project_key"])
            assert [{"session_id": summary["session_id"], "mtime": summary["mtime"]}] == before
            assert await sessions.list_sessions(MAIN["project_key"]) == before
            await store.save_session(loaded)
            summary["data"].clear()
            (again,) = await sessions.list_session_summaries(MAIN["project_key"])
            assert again["data"]["first_prompt"] == "Which ferry arrives before noon?"

    asyncio.run(scene())


def test_what_was_said_is_kept_in_its_session_alone(store_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(store_url) as store:
            sessions = StateStoreSessions(store, user_id="alice")
            for number in range(3):
                key: Any = {**MAIN, "session_id": str(number)}
                await sessions.append(key, ENTRIES)
            assert len(await sessions.list_session_summaries(MAIN["project_key"])) == 3
            assert await store.list_categories() == []
            await store.delete_session("0:-home-alice-island")
            assert len(await sessions.list_session_summaries(MAIN["project_key"])) == 2
            await store.erase_user("alice")
            assert await store.count_sessions() == 0
            assert await store.list_categories() == []

    asyncio.run(scene())


def test_a_session_that_is_made_anew_under_an_old_id_has_its_own_summary(store_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessions(store_url) as sessions:
            await sessions.append(MAIN, [QUESTION, {"type": "custom-title", "customTitle": "Secret"}])
            await sessions.list_session_summaries(MAIN["project_key"])
            await sessions.delete(MAIN)
            entry = {**QUESTION, "message": {"role": "user", "content": "Something else?"}}
            await sessions.append(MAIN, [{**entry, "uuid": f"new-{number}"} for number in range(3)])
            (summary,) = await sessions.list_session_summaries(MAIN["project_key"])
            assert summary["data"]["first_prompt"] == "Something else?"
            assert "Secret" not in str(summary)

    asyncio.run(scene())


def test_summaries_are_told_by_a_store_that_is_only_read(sqlite_url: str) -> None:
    async def scene() -> None:
        async with StateStoreSessions(sqlite_url) as sessions:
            await sessions.append(MAIN, [QUESTION])
        async with AsyncStateStore.open(sqlite_url, read_only=True) as store:
            (summary,) = await StateStoreSessions(store).list_session_summaries(MAIN["project_key"])
            assert summary["data"]["first_prompt"] == "Which ferry arrives before noon?"

    asyncio.run(scene())


@pytest.mark.parametrize("odd", ["u3#1", "\ud800", "u\0", "u" * 1000])
def test_no_uuid_is_taken_for_another_one(sqlite_url: str, odd: str) -> None:
    async def scene() -> None:
        async with StateStoreSessions(sqlite_url) as sessions:
            entries: Any = [LOOK, {**QUESTION, "uuid": odd}, RESULT]
            for _ in range(2):
                await sessions.append(MAIN, entries)
            assert await sessions.load(MAIN) == entries

    asyncio.run(scene())


def test_what_is_no_unicode_is_shown_as_far_as_it_can_be(sqlite_url: str) -> None:
    async def scene() -> None:
        entries: Any = [
            {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "cut \ud83d"}},
            {"type": "custom-title", "customTitle": "half \ud83d"},
        ]
        async with StateStoreSessions(sqlite_url) as sessions:
            await sessions.append(MAIN, entries)
        with StateStore.open(sqlite_url) as store:
            session = store.load_session(TRIP)
            assert session is not None
            assert [message.content for message in session.user_messages] == ["cut ?"]
            assert session.metadata["title"] == "half ?"
            assert turns_in(session) == [Said("user", "cut ?")]
            assert messages_for("claude-agent-sdk", session) == entries

    asyncio.run(scene())


@pytest.mark.parametrize("bad", [b"bytes", {1, 2}, object(), float("nan")])
def test_what_is_not_json_is_refused_and_nothing_is_written(sqlite_url: str, bad: Any) -> None:
    async def scene() -> None:
        async with StateStoreSessions(sqlite_url) as sessions:
            with pytest.raises(InvalidValue):
                await sessions.append(MAIN, [QUESTION, {"type": "x", "uuid": "1", "bad": bad}])  # type: ignore[typeddict-unknown-key]
            assert await sessions.load(MAIN) is None
            assert await sessions.list_sessions(MAIN["project_key"]) == []

    asyncio.run(scene())


def test_a_damaged_entry_names_itself_and_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with StateStoreSessions(sqlite_url) as sessions:
            for entry in ENTRIES:
                await sessions.append(MAIN, [entry])
            with sqlite3.connect(sqlite_url.removeprefix("sqlite:")) as database:
                database.execute("UPDATE records SET body = '{torn' WHERE place & 0xffffffff = 1")
            database.close()
            with caplog.at_level(logging.WARNING, "statestore"):
                assert await sessions.load(MAIN) == ENTRIES[1:]
                assert len(await sessions.list_session_summaries(MAIN["project_key"])) == 1
            assert f"session {TRIP}: record 1 cannot be read" in caplog.text

    asyncio.run(scene())


def test_a_users_sessions_are_not_anothers(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            alices, bobs = StateStoreSessions(store, user_id="alice"), StateStoreSessions(store, user_id="bob")
            await alices.append(MAIN, [QUESTION])
            await alices.append(SUB, [QUESTION])
            assert await bobs.load(MAIN) is None
            assert await bobs.list_sessions(MAIN["project_key"]) == []
            assert await bobs.list_session_summaries(MAIN["project_key"]) == []
            assert await bobs.list_subkeys(MAIN) == []
            await bobs.delete(MAIN)
            with pytest.raises(WrongUser):
                await bobs.append(MAIN, [ANSWER])
            assert await alices.load(MAIN) == [QUESTION]
            assert len(await alices.list_session_summaries(MAIN["project_key"])) == 1

    asyncio.run(scene())


def test_a_plain_store_serves_as_well_and_stays_open(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:

        async def scene() -> None:
            async with StateStoreSessions(store) as sessions:
                await sessions.append(MAIN, ENTRIES)
                assert await sessions.load(MAIN) == ENTRIES
                assert len(await sessions.list_session_summaries(MAIN["project_key"])) == 1

        asyncio.run(scene())
        assert store.count_sessions() == 1

    async def closed() -> None:
        sessions = StateStoreSessions(sqlite_url)
        assert await sessions.load(MAIN) == ENTRIES
        await sessions.close()
        with pytest.raises(StoreClosed):
            await sessions.load(MAIN)

    asyncio.run(closed())


def test_text_and_tool_calls_are_handed_over_both_ways(sqlite_url: str) -> None:
    asyncio.run(_store(sqlite_url))
    with StateStore.open(sqlite_url) as store:
        session = store.load_session(TRIP)
        assert session is not None
        turns = turns_in(session)
        assert turns == [
            Said("user", "Which ferry arrives before noon?"),
            Said("assistant", "Let me look."),
            ToolCall("t1", "timetable", '{"before":"12:00"}'),
            ToolResult("t1", "10:40"),
            Said("assistant", "The 10:40."),
        ]
        assert messages_for("claude-agent-sdk", session) == ENTRIES
        assert messages_for("openai-agents", session)[0]["content"] == "Which ferry arrives before noon?"
        from statestore.adapters.dialects.claude_agent_sdk import DIALECT

        written = DIALECT.write(turns)
        assert [turn for entry in written for turn in DIALECT.read(entry)] == turns
        assert [entry["parentUuid"] for entry in written] == [None, *(entry["uuid"] for entry in written[:-1])]
        assert DIALECT.write(turns) == written


async def _store(url: str) -> None:
    async with StateStoreSessions(url) as sessions:
        await sessions.append(MAIN, ENTRIES)


def test_what_the_user_did_not_say_is_no_user_message() -> None:
    def kinds(entry: Any) -> list[str]:
        return [kind_of(record) for record in records_of(entry)]

    question: Any = QUESTION
    assert kinds(question) == ["user"]
    assert kinds({**question, "isMeta": True}) == ["system"]
    assert kinds({**question, "isCompactSummary": True}) == ["system"]
    assert kinds(LOOK) == ["agent", "tool_call"]
    assert kinds(RESULT) == ["tool_result"]
    assert kinds({**LOOK, "message": {"content": LOOK["message"]["content"][:1]}}) == ["reasoning"]
    assert kinds({**LOOK, "message": {"content": LOOK["message"]["content"][2:]}}) == ["tool_call"]
    assert kinds(UNKNOWN) == ["a-type-of-tomorrow"]
    assert kinds({"type": "user"}) == ["user"]
    assert kinds({"no": "type"}) == ["item"]


def test_what_a_program_adds_is_part_of_the_transcript(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            sessions = StateStoreSessions(store)
            await sessions.append(MAIN, [QUESTION])
            session = await store.load_session(TRIP)
            assert session is not None
            session.add_agent_response("The 10:40.")
            await store.save_session(session)
            loaded: Any = await sessions.load(MAIN)
            assert loaded[0] == QUESTION
            assert loaded[1]["message"] == {"role": "assistant", "content": [{"type": "text", "text": "The 10:40."}]}

    asyncio.run(scene())


def test_the_example_remembers(sqlite_url: str) -> None:
    lines = output_of("claude_agent_sdk_chat", sqlite_url)
    assert lines[:4] == [
        "claude: The 10:40.",
        "claude: Booked: the 10:40.",
        "listed: Which ferry arrives before noon?",
        "messages: 6",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines


def test_errors_are_the_stores_own() -> None:
    async def scene() -> None:
        with pytest.raises(StateStoreError):
            await StateStoreSessions("nonsense://nowhere").load(MAIN)

    asyncio.run(scene())
