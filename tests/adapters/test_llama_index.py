"""LlamaIndex's chat store: first on its own SimpleChatStore, then on ours."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.llms import ChatMessage, ImageBlock, MessageRole, TextBlock
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.storage.chat_store import BaseChatStore, SimpleChatStore

from adapters.conftest import ENGINES, new_url
from adapters.contests import WRITES, two_processes
from adapters.reading import assert_readable
from adapters.writers import write_llama_messages
from statestore import AsyncStateStore, InvalidValue, StateStore, UserMessage
from statestore.adapters.conversations import Conversation
from statestore.adapters.llama_index import StateStoreChatStore

CALLS = [{"id": "call_1", "type": "function", "function": {"name": "timetable", "arguments": '{"before":"12:00"}'}}]
MESSAGES = [
    ChatMessage(role="system", content="Be short."),
    ChatMessage(role="user", content="Which ferry arrives before noon?", additional_kwargs={"from": "phone"}),
    ChatMessage(role="assistant", content="Let me look.", additional_kwargs={"tool_calls": CALLS}),
    ChatMessage(role="tool", content="10:40, 11:15", additional_kwargs={"tool_call_id": "call_1", "name": "timetable"}),
    ChatMessage(role="assistant", content="The 10:40."),
    ChatMessage(role="user", blocks=[TextBlock(text="And this?"), ImageBlock(image=b"picture")]),
    ChatMessage(role=MessageRole.CHATBOT, content="東京"),
]


@pytest.fixture(params=["theirs", *ENGINES])
def chats(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseChatStore]:
    if request.param == "theirs":
        yield SimpleChatStore()
        return
    for url in new_url(request.param, tmp_path):
        ours = StateStoreChatStore(url)
        yield ours
        ours.close()


@pytest.fixture
def ours(sqlite_url: str) -> Iterator[StateStoreChatStore]:
    chats = StateStoreChatStore(sqlite_url)
    yield chats
    chats.close()


def test_messages_come_back_as_they_were(chats: BaseChatStore) -> None:
    assert chats.get_messages("trip") == []
    for message in MESSAGES:
        chats.add_message("trip", message)
    assert chats.get_messages("trip") == MESSAGES
    assert chats.get_messages("other") == []


def test_set_replaces_everything(chats: BaseChatStore) -> None:
    chats.set_messages("trip", list(MESSAGES))
    assert chats.get_messages("trip") == MESSAGES
    for shorter in (MESSAGES[:3], MESSAGES[2:5], [*MESSAGES[2:4], MESSAGES[0]], []):
        chats.set_messages("trip", list(shorter))
        assert chats.get_messages("trip") == shorter


def test_delete_messages_gives_back_what_there_was(chats: BaseChatStore) -> None:
    assert chats.delete_messages("trip") is None
    chats.set_messages("trip", list(MESSAGES))
    assert chats.delete_messages("trip") == MESSAGES
    assert chats.get_messages("trip") == []
    assert chats.get_keys() == []


def test_what_is_added_while_all_is_deleted_is_given_back_or_stays(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateStore.open(sqlite_url) as store:
        chats = StateStoreChatStore(store)
        chats.set_messages("trip", MESSAGES[:1])
        items = Conversation.items

        async def overtaken(self: Conversation, store: AsyncStateStore, last: int | None = None) -> list[Any]:
            found = await items(self, store, last)
            if len(found) == 1:
                await store.append(self.id, UserMessage("And one more."))
            return found

        monkeypatch.setattr(Conversation, "items", overtaken)
        assert chats.delete_messages("trip") == [MESSAGES[0], ChatMessage(role="user", content="And one more.")]
        assert chats.get_messages("trip") == []


def test_one_message_is_deleted_by_its_place(chats: BaseChatStore) -> None:
    assert chats.delete_message("trip", 0) is None
    chats.set_messages("trip", list(MESSAGES))
    assert chats.delete_message("trip", 2) == MESSAGES[2]
    assert chats.delete_message("trip", 0) == MESSAGES[0]
    assert chats.delete_message("trip", 99) is None
    assert chats.get_messages("trip") == [MESSAGES[1], *MESSAGES[3:]]


def test_the_last_message_is_deleted(chats: BaseChatStore) -> None:
    assert chats.delete_last_message("trip") is None
    chats.set_messages("trip", MESSAGES[:3])
    assert chats.delete_last_message("trip") == MESSAGES[2]
    assert chats.delete_last_message("trip") == MESSAGES[1]
    assert chats.get_messages("trip") == MESSAGES[:1]


def test_keys_are_listed_whatever_they_are(chats: BaseChatStore) -> None:
    keys = ["trip", "team/alice", "..", "x" * 300, "東京", "a%2Fb"]
    for key in keys:
        chats.add_message(key, MESSAGES[1])
    assert sorted(chats.get_keys()) == sorted(keys)
    for key in keys:
        assert chats.get_messages(key) == [MESSAGES[1]]


def test_the_asynchronous_methods_do_the_same(chats: BaseChatStore) -> None:
    async def scene() -> None:
        await chats.aset_messages("trip", MESSAGES[:2])
        await chats.async_add_message("trip", MESSAGES[2])
        assert await chats.aget_messages("trip") == MESSAGES[:3]
        assert await chats.adelete_message("trip", 1) == MESSAGES[1]
        assert await chats.adelete_last_message("trip") == MESSAGES[2]
        assert await chats.aget_keys() == ["trip"]
        assert await chats.adelete_messages("trip") == MESSAGES[:1]
        assert await chats.aget_keys() == []

    asyncio.run(scene())


def test_a_memory_works_on_it(chats: BaseChatStore) -> None:
    memory = ChatMemoryBuffer.from_defaults(chat_store=chats, chat_store_key="trip", token_limit=3000)
    memory.put(MESSAGES[1])
    memory.put(MESSAGES[4])
    assert memory.get() == [MESSAGES[1], MESSAGES[4]]
    memory.set(MESSAGES[:2])
    assert memory.get_all() == MESSAGES[:2]
    memory.reset()
    assert memory.get_all() == []


# -- What ours promises beyond the contract.


def test_two_processes_lose_nothing(store_url: str) -> None:
    two_processes(write_llama_messages, store_url)
    chats = StateStoreChatStore(store_url)
    said = [str(message.content) for message in chats.get_messages("contest")]
    chats.close()
    assert len(said) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in said if text.startswith(name)] == [f"{name} {n}" for n in range(WRITES)]


def test_a_person_can_read_it(store_url: str) -> None:
    chats = StateStoreChatStore(store_url, user_id="alice")
    chats.set_messages("trip", MESSAGES[1:5])
    chats.close()
    seen = assert_readable(
        store_url, "trip", user="Which ferry arrives before noon?", agent="The 10:40.", word="ferry", event="tool_call"
    )
    assert "timetable" in seen.show


@pytest.mark.parametrize("bad", [object(), {1, object()}])
def test_what_is_not_json_is_refused_and_nothing_is_written(ours: StateStoreChatStore, bad: Any) -> None:
    with pytest.raises(InvalidValue):
        ours.add_message("trip", ChatMessage(role="user", content="x", additional_kwargs={"bad": bad}))
    assert ours.get_keys() == []


@pytest.mark.parametrize("data", [b"text", b"\xff\x00"])
def test_bytes_are_encoded_as_llama_index_encodes_them_or_refused(ours: StateStoreChatStore, data: bytes) -> None:
    message = ChatMessage(role="user", content="x", additional_kwargs={"data": data})
    try:
        encoded = message.model_dump(mode="json")["additional_kwargs"]
    except ValueError:  # as early versions do
        with pytest.raises(InvalidValue):
            ours.add_message("trip", message)
        assert ours.get_keys() == []
    else:
        ours.add_message("trip", message)
        assert ours.get_messages("trip")[0].additional_kwargs == encoded


def test_the_last_message_of_an_empty_key_is_none(ours: StateStoreChatStore) -> None:
    ours.set_messages("trip", [])
    assert ours.delete_last_message("trip") is None
    assert ours.get_keys() == ["trip"]


def test_a_longer_list_is_appended_to_not_rewritten(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        chats = StateStoreChatStore(store)
        chats.set_messages("trip", MESSAGES[:3])
        before = store.timeline("trip")
        chats.set_messages("trip", list(MESSAGES))
        assert store.timeline("trip")[: len(before)] == before


def test_users_and_projects_do_not_see_each_other(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        alices, bobs = StateStoreChatStore(store, user_id="alice"), StateStoreChatStore(store, user_id="bob")
        islands = StateStoreChatStore(store, project_id="islands")
        alices.add_message("trip", MESSAGES[1])
        islands.add_message("ferries", MESSAGES[1])
        assert alices.get_keys() == ["trip"]
        assert bobs.get_keys() == []
        assert bobs.get_messages("trip") == []
        assert islands.get_keys() == ["ferries"]


def test_it_is_described_by_its_url_and_made_from_that(ours: StateStoreChatStore) -> None:
    ours.add_message("trip", MESSAGES[1])
    again = StateStoreChatStore.from_dict(ours.to_dict())
    assert again.get_messages("trip") == MESSAGES[1:2]
    again.close()


def test_what_others_wrote_is_read_and_edited(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        chats = StateStoreChatStore(store)
        chats.set_messages("trip", MESSAGES[:2])
        store.append("trip", UserMessage("From the command line."))
        chats.add_message("trip", MESSAGES[4])
        foreign = ChatMessage(role="user", content="From the command line.")
        assert chats.get_messages("trip") == [*MESSAGES[:2], foreign, MESSAGES[4]]
        assert chats.delete_message("trip", 1) == MESSAGES[1]
        assert chats.get_messages("trip") == [MESSAGES[0], foreign, MESSAGES[4]]


def test_an_asynchronous_store_serves_too(sqlite_url: str) -> None:
    async def scene() -> None:
        async with AsyncStateStore.open(sqlite_url) as store:
            chats = StateStoreChatStore(store)
            await chats.aset_messages("trip", MESSAGES)
            assert await asyncio.to_thread(chats.get_messages, "trip") == MESSAGES

    asyncio.run(scene())
