"""Pydantic AI's contract for conversation stores: first on its own, in memory, then on ours."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import RunUsage

from adapters.pydantic_ai.conftest import Opened
from adapters.pydantic_ai.messages import answered, asked, dialogue, exchange, texts


async def saved(store: Any, conversation_id: str, count: int = 3, **options: Any) -> Conversation:
    messages = [message for number in range(count) for message in exchange(number)]
    conversation = Conversation(conversation_id=conversation_id, messages=messages)
    await store.save(conversation, **options)
    return conversation


def test_what_was_never_saved_is_none(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            assert await store.load("trip") is None
            assert await store.load_entries("trip") is None
            assert await store.read_record("trip") is None
            assert await store.list_conversations() == []
            await store.delete("trip")
            with pytest.raises(LookupError):
                await store.read_entry("0190a6e0-0000-7000-8000-000000000000")

    asyncio.run(scene())


def test_a_conversation_comes_back_equal(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            requests = DeferredToolRequests(
                approvals=[ToolCallPart("book", {"seat": 7}, tool_call_id="call_9")],
                metadata={"call_9": {"why": "paid"}},
            )
            conversation = Conversation(
                conversation_id="trip",
                messages=dialogue(),
                usage=RunUsage(requests=3, tool_calls=1, input_tokens=12, details={"cached": 4}),
                deferred_tool_requests=requests,
            )
            entries = await store.save(conversation)
            assert [entry.message for entry in entries] == conversation.messages
            assert conversation.revision is not None
            loaded = await store.load("trip")
            assert loaded.messages == conversation.messages
            assert loaded == conversation
            assert (loaded.usage, loaded.deferred_tool_requests) == (conversation.usage, requests)
            assert await store.load_entries("trip") == entries
            assert [entry.parent_id for entry in entries] == [None, *(entry.id for entry in entries[:-1])]
            for entry in entries:
                assert await store.read_entry(entry.id) == entry

    asyncio.run(scene())


def test_a_save_stores_only_what_is_new(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            conversation = await saved(store, "trip", 2)
            assert await store.save(conversation) == []
            for number in range(2, 5):
                loaded = await store.load("trip")
                loaded.messages += exchange(number)
                new = await store.save(loaded)
                assert [entry.message for entry in new] == loaded.messages[-2:]
            assert texts(await store.load("trip"))[-2:] == ["question 4", "answer 4"]
            assert len((await store.load("trip")).messages) == 10

    asyncio.run(scene())


def test_the_last_messages_can_be_asked_for_and_gone_on_from(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            conversation = await saved(store, "trip", 5)
            for limit in range(12):
                loaded = await store.load("trip", limit=limit)
                assert loaded.messages == conversation.messages[max(10 - limit, 0) :]
            with pytest.raises(UserError):
                await store.load("trip", limit=-1)
            window = await store.load("trip", limit=2)
            window.messages += exchange(5)
            await store.save(window)
            assert texts(await store.load("trip"))[8:] == ["question 4", "answer 4", "question 5", "answer 5"]
            assert len((await store.load("trip")).messages) == 12

    asyncio.run(scene())


def test_of_two_who_save_at_once_one_is_told(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "trip")
            mine, theirs = await store.load("trip"), await store.load("trip")
            theirs.messages += exchange(7)
            await store.save(theirs)
            mine.messages += exchange(8)
            with pytest.raises(ConversationConflict) as caught:
                await store.save(mine)
            assert caught.value.conversation_id == "trip"
            assert texts(await store.load("trip"))[-1] == "answer 7"
            with pytest.raises(ConversationConflict):
                await store.save(Conversation(conversation_id="trip", messages=exchange(9)))
            await store.delete("trip")
            with pytest.raises(ConversationConflict):
                await store.save(theirs)

    asyncio.run(scene())


def test_a_conversation_made_anew_is_another(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            old = await saved(store, "trip")
            await store.delete("trip")
            new = await saved(store, "trip", 1)
            assert new.revision != old.revision
            with pytest.raises(ConversationConflict):
                await store.save(old)
            assert len((await store.load("trip")).messages) == 2

    asyncio.run(scene())


def test_a_scope_keeps_a_conversation_to_its_owner(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "a", scope="alice")
            await saved(store, "b", scope="bob")
            await saved(store, "n")
            assert await store.load("a", scope="bob") is None
            assert await store.load("n", scope="bob") is None
            assert (await store.load("a", scope="alice")).conversation_id == "a"
            assert (await store.load("a")).conversation_id == "a"
            await store.delete("a", scope="bob")
            mine = await store.load("a")
            mine.messages += exchange(9)
            with pytest.raises(ConversationConflict):
                await store.save(mine, scope="bob")
            await store.save(mine)
            assert (await store.read_record("a")).scope == "alice"
            assert [one.conversation_id for one in await store.list_conversations(scope="alice")] == ["a"]
            assert [one.conversation_id for one in await store.list_conversations(scope="nobody")] == []
            await store.delete("a", scope="alice")
            assert await store.load("a") is None

    asyncio.run(scene())


def test_a_listing_is_newest_first(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            for name in "abcd":
                await saved(store, name, 1, scope="alice")
            again = await store.load("b")
            again.messages += exchange(5)
            await store.save(again)
            assert [one.conversation_id for one in await store.list_conversations()] == ["b", "d", "c", "a"]
            assert [one.conversation_id for one in await store.list_conversations(limit=2)] == ["b", "d"]
            assert [one.conversation_id for one in await store.list_conversations(scope="alice", limit=3)] == [*"bdc"]
            assert await store.list_conversations(limit=0) == []
            assert (await store.list_conversations())[0] == await store.read_record("b")
            await store.delete("b")
            assert [one.conversation_id for one in await store.list_conversations()] == ["d", "c", "a"]

    asyncio.run(scene())


def test_a_rewritten_history_branches_off_and_the_old_one_stays(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            first = await saved(store, "trip", 3)
            tip = (await store.read_record("trip")).head_id
            rewritten = Conversation(
                conversation_id="trip",
                messages=[*first.messages[:2], asked("another question"), answered("another answer")],
                revision=first.revision,
            )
            new = await store.save(rewritten)
            assert len(new) == 2
            assert texts(await store.load("trip")) == ["question 0", "answer 0", "another question", "another answer"]
            record = await store.read_record("trip")
            assert record.branches == [tip]
            assert [entry.message for entry in await store.read_history(tip)] == first.messages

    asyncio.run(scene())


def test_one_may_branch_and_branch_back(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            first = await saved(store, "trip", 3)
            tip = (await store.read_record("trip")).head_id
            branched = await store.branch("trip", at=2, expected_revision=first.revision)
            assert branched.messages == first.messages[:2]
            branched.messages += [asked("or by train?")]
            await store.save(branched)
            other = (await store.read_record("trip")).head_id
            assert texts(await store.load("trip")) == ["question 0", "answer 0", "or by train?"]
            with pytest.raises(ConversationConflict):
                await store.branch("trip", at=1, expected_revision=first.revision)
            back = await store.branch("trip", from_entry=tip, expected_revision=branched.revision)
            assert back.messages == first.messages
            record = await store.read_record("trip")
            assert (record.head_id, record.branches) == (tip, [other])
            back.messages += exchange(3)
            await store.save(back)
            assert len((await store.load("trip")).messages) == 8
            start = await store.branch("trip", at=0, expected_revision=back.revision)
            assert start.messages == []
            start.messages += exchange(9)
            await store.save(start)
            assert texts(await store.load("trip")) == ["question 9", "answer 9"]
            with pytest.raises(UserError):
                await store.branch("trip", at=99, expected_revision=start.revision)

    asyncio.run(scene())


def test_a_fork_shares_what_was_before_it(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            first = await saved(store, "trip", 3, scope="alice")
            entries = await store.load_entries("trip")
            fork = await store.fork("trip", at=4, new_conversation_id="other")
            assert fork.messages == first.messages[:4]
            record = await store.read_record("other")
            assert (record.forked_from, record.forked_at, record.scope) == ("trip", entries[3].id, "alice")
            fork.messages += [asked("or by train?")]
            assert len(await store.save(fork)) == 1
            assert texts(await store.load("other"))[3:] == ["answer 1", "or by train?"]
            assert (await store.load_entries("other"))[:4] == entries[:4]
            again = await store.fork("other", new_conversation_id="third")
            again.messages += [asked("or by air?")]
            await store.save(again)
            assert texts(await store.load("third"))[3:] == ["answer 1", "or by train?", "or by air?"]
            assert texts(await store.load("third", limit=3)) == ["answer 1", "or by train?", "or by air?"]
            first.messages += exchange(3)
            await store.save(first)
            assert len((await store.load("trip")).messages) == 8
            assert len((await store.load("other")).messages) == 5
            with pytest.raises(ConversationConflict):
                await store.fork("trip", new_conversation_id="other")

    asyncio.run(scene())


def test_a_fork_outlives_what_it_was_forked_from(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "trip", 3)
            entries = await store.load_entries("trip")
            other = await store.fork("trip", at=4, new_conversation_id="other")
            other.messages += [asked("or by train?")]
            await store.save(other)
            await store.fork("other", new_conversation_id="third")
            await store.delete("trip")
            assert await store.load("trip") is None
            assert [one.conversation_id for one in await store.list_conversations()] == ["third", "other"]
            assert texts(await store.load("other"))[3:] == ["answer 1", "or by train?"]
            await store.delete("other")
            assert texts(await store.load("third"))[3:] == ["answer 1", "or by train?"]
            await store.delete("third")
            for entry in entries:
                with pytest.raises(LookupError):
                    await store.read_entry(entry.id)
            assert await store.list_conversations() == []

    asyncio.run(scene())


def test_an_id_is_free_again_although_a_fork_needs_what_was_there(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "trip", 3, scope="alice")
            await store.fork("trip", at=4, new_conversation_id="other", scope="bob")
            await store.delete("trip")
            await saved(store, "trip", 1, scope="alice")
            assert texts(await store.load("trip")) == ["question 0", "answer 0"]
            assert [one.conversation_id for one in await store.list_conversations(scope="alice")] == ["trip"]
            await store.delete("other")
            assert texts(await store.load("trip")) == ["question 0", "answer 0"]
            await store.delete("trip")
            assert await store.list_conversations() == []

    asyncio.run(scene())


def test_deleted_entries_are_gone(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "trip")
            entries = await store.load_entries("trip")
            await store.delete("trip")
            for entry in entries:
                with pytest.raises(LookupError):
                    await store.read_entry(entry.id)

    asyncio.run(scene())


def record_of(conversation_id: str, head_id: str | None, **fields: Any) -> ConversationRecord:
    return ConversationRecord(conversation_id=conversation_id, head_id=head_id, **fields)


def test_the_primitives_compare_and_set(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            entry = ConversationEntry(parent_id=None, message=asked("hello"))
            first = record_of("trip", entry.id, scope="alice")
            await store.write_record(first, new_entries=[entry], expected_revision=None)
            assert await store.read_record("trip") == first
            second = record_of("trip", entry.id, updated_at=datetime.now(UTC) + timedelta(minutes=5))
            for wrong in (None, "nonsense"):
                with pytest.raises(ConversationConflict):
                    await store.write_record(second, expected_revision=wrong)
            with pytest.raises(ConversationConflict):
                await store.write_record(record_of("new", None), expected_revision="nonsense")
            await store.write_record(second, expected_revision=first.revision)
            assert await store.read_record("trip") == second
            assert list(await store.read_records(scope="alice")) == []
            for wrong in (first.revision, "nonsense"):
                with pytest.raises(ConversationConflict):
                    await store.delete_record("trip", expected_revision=wrong)
            with pytest.raises(ConversationConflict):
                await store.delete_record("none", expected_revision=second.revision)
            await store.delete_record("trip", expected_revision=second.revision)
            assert await store.read_record("trip") is None

    asyncio.run(scene())


def test_a_record_that_points_to_nothing_is_refused(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, "trip", 1)
            gone = (await store.read_record("trip")).head_id
            await store.delete("trip")
            with pytest.raises(ConversationConflict):
                await store.write_record(record_of("fork", gone), expected_revision=None)
            assert await store.read_record("fork") is None

    asyncio.run(scene())


def test_what_is_given_out_is_a_copy(opened: Opened) -> None:
    async def scene() -> None:
        async with opened() as store:
            conversation = await saved(store, "trip", 1)
            record = await store.read_record("trip")
            record.branches.append("x")
            record.usage.requests = 99
            conversation.messages[0].parts[0].content = "changed"
            assert (await store.read_record("trip")).branches == []
            assert (await store.load("trip")).usage.requests == 0
            assert texts(await store.load("trip")) == ["question 0", "answer 0"]

    asyncio.run(scene())


@pytest.mark.parametrize("odd", ["a/b", "..", "x:y", "%2F", "é東京", "x" * 300, " ", ""])
def test_any_text_is_an_id_and_a_scope(opened: Opened, odd: str) -> None:
    async def scene() -> None:
        async with opened() as store:
            await saved(store, odd, 1, scope=odd)
            await saved(store, f"{odd}%", 1, scope=f"{odd}%")
            assert texts(await store.load(odd, scope=odd)) == ["question 0", "answer 0"]
            assert [one.conversation_id for one in await store.list_conversations(scope=odd)] == [odd]
            fork = await store.fork(odd, new_conversation_id=f"{odd}2")
            fork.messages += exchange(1)
            await store.save(fork)
            assert len((await store.load(f"{odd}2")).messages) == 4
            await store.delete(odd, scope=odd)
            assert await store.load(odd) is None

    asyncio.run(scene())
