"""LlamaIndex's contracts for chats, on a statestore.

`StateStoreChatStore` is a `BaseChatStore`, for ``ChatMemoryBuffer(chat_store=…)``. `StateStoreDBChatStore` is the newer
`AsyncDBChatStore`, a queue with an archive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel, Field, PrivateAttr
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from statestore.adapters.access import Access, ClosesEitherWay, Target, sessions_of
from statestore.adapters.conversations import NOTHING, Conversation
from statestore.adapters.dialects.llama_index import NAME, records_of
from statestore.adapters.identifiers import foreign_id
from statestore.adapters.items import readable
from statestore.adapters.llama_index.queue import Queue, Row
from statestore.adapters.originals import metadata_of_shortened
from statestore.errors import InvalidName, InvalidValue
from statestore.store.async_store import AsyncStateStore


class _Keyed(ClosesEitherWay, BaseModel):
    """What both stores share: the way to the statestore, and whose sessions they see."""

    url: str = Field(description="The URL of the statestore, without any password")
    user_id: str | None = Field(default=None, description="Whose sessions these are; everybody's, if it is not set")
    project_id: str | None = Field(default=None, description="The project of new sessions, and the only one listed")

    _access: Access = PrivateAttr()

    def _conversation(self, key: str) -> Conversation:
        metadata = {} if self.project_id is None else {"project_id": self.project_id}
        return Conversation.of(NAME, key, user_id=self.user_id, metadata=metadata)

    async def _keys(self, store: AsyncStateStore) -> list[str]:
        listed = await sessions_of(store, self.user_id).list_sessions(order="id", project_id=self.project_id)
        metadata = await metadata_of_shortened(store, self.user_id, listed)
        keys: list[str] = []
        for summary in listed:
            try:
                keys.append(foreign_id(summary.id, metadata.get(summary.id)))
            except InvalidName:
                keys.append(summary.id)  # not made by an adapter: its id is its key
        return keys


class StateStoreChatStore(_Keyed, BaseChatStore):
    """Messages by key. ``store`` is an open `StateStore` or `AsyncStateStore`, or a URL or path to open on first use.

    The asynchronous methods do not block their loop. With a ``user_id``, only that user's sessions exist here; with a
    ``project_id``, new sessions belong to it, and `get_keys` lists no others.
    """

    def __init__(self, store: Target | None = None, *, url: str | None = None, **fields: Any) -> None:
        super().__init__(url=_url_of(store, url), **fields)
        self._access = Access(store or self.url, opens="plain")

    @classmethod
    def class_name(cls) -> str:
        return "StateStoreChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Hold exactly these messages under a key."""
        items = _items(messages)
        self._access.call(lambda store: self._conversation(key).replace(store, items))

    def get_messages(self, key: str) -> list[ChatMessage]:
        """All messages of a key, in order; none, if there is no such key."""
        return messages_from(self._access.call(self._conversation(key).items))

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Add a message; two processes that add lose nothing."""
        records = records_of(_item(message))
        self._access.call(lambda store: self._conversation(key).add(store, records))

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Remove a key; the messages it had, or ``None`` if there was none."""
        return self._access.call(lambda store: self._deleted(store, key))

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove one message by its place, and give it back."""
        return _given(self._access.call(lambda store: self._conversation(key).remove(store, idx)))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Remove the last message, and give it back."""
        return _given(self._access.call(self._conversation(key).pop))

    def get_keys(self) -> list[str]:
        """All keys."""
        return self._access.call(self._keys)

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        items = _items(messages)
        await self._access.run(lambda store: self._conversation(key).replace(store, items))

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        return messages_from(await self._access.run(self._conversation(key).items))

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        records = records_of(_item(message))
        await self._access.run(lambda store: self._conversation(key).add(store, records))

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        return await self._access.run(lambda store: self._deleted(store, key))

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        return _given(await self._access.run(lambda store: self._conversation(key).remove(store, idx)))

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        return _given(await self._access.run(self._conversation(key).pop))

    async def aget_keys(self) -> list[str]:
        return await self._access.run(self._keys)

    async def _deleted(self, store: AsyncStateStore, key: str) -> list[ChatMessage] | None:
        items = await self._conversation(key).take(store)
        return None if items is NOTHING else messages_from(items)


class StateStoreDBChatStore(_Keyed, AsyncDBChatStore):
    """A queue of messages for each key, with an archive. ``store`` is an open `AsyncStateStore`, or a URL or path.

    `delete_message` takes the number of a record, as ``statestore show`` prints it.
    """

    def __init__(self, store: Target | None = None, *, url: str | None = None, **fields: Any) -> None:
        super().__init__(url=_url_of(store, url), **fields)
        self._access = Access(store or self.url, opens="async")

    @classmethod
    def class_name(cls) -> str:
        return "StateStoreDBChatStore"

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """The messages of a status, or all, in order: ``limit`` of them after the first ``offset``."""
        rows = (await self._rows(key, status))[offset or 0 :]
        return messages_from([row.item for row in (rows if limit is None else rows[:limit])])

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """How many messages of a status there are."""
        return len(await self._rows(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Add a message."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Add messages, all in one commit."""
        items = _items(messages)
        await self._access.run(lambda store: self._queue(key).add(store, items, status.value))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Hold exactly these messages, whatever was there before."""
        items = _items(messages)
        await self._access.run(lambda store: self._queue(key).replace(store, items, status.value))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove the message with a record's number, and give it back."""
        gone = await self._change(key, lambda rows: [row for row in rows if row.seq == idx])
        return messages_from([row.item for row in gone])[0] if gone else None

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Remove the messages of a status, or the key with all of them."""
        if status is None:
            await self._access.run(self._conversation(key).clear)
        else:
            is_archived = status == MessageStatus.ARCHIVED
            await self._change(key, lambda rows: [row for row in rows if row.is_archived == is_archived])

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Remove the oldest active messages, and give them back."""
        gone = await self._change(key, lambda rows: [row for row in rows if not row.is_archived][: max(n, 0)])
        return messages_from([row.item for row in gone])

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and give them back."""
        return messages_from(await self._access.run(lambda store: self._queue(key).archive_oldest(store, n)))

    async def get_keys(self) -> list[str]:
        """All keys."""
        return await self._access.run(self._keys)

    def _queue(self, key: str) -> Queue:
        return Queue(self._conversation(key))

    async def _rows(self, key: str, status: MessageStatus | None) -> list[Row]:
        wanted = None if status is None else status.value
        return await self._access.run(lambda store: self._queue(key).rows(store, wanted))

    async def _change(self, key: str, choose: Callable[[list[Row]], list[Row]]) -> list[Row]:
        return await self._access.run(lambda store: self._queue(key).change(store, choose))


def _url_of(store: Target | None, url: str | None) -> str:
    if store is None and url is None:
        raise InvalidValue("give an open store, or a URL or path to open one")
    return str(url if store is None else getattr(store, "url", store))


def _item(message: ChatMessage) -> dict[str, Any]:
    """A message as LlamaIndex's own stores write it: bytes become base64, objects their fields."""
    try:
        return message.model_dump(mode="json")
    except ValueError as error:
        raise InvalidValue(f"the message is not JSON: {error}") from error


def _items(messages: list[ChatMessage]) -> list[dict[str, Any]]:
    return [_item(message) for message in messages]


def _given(item: Any) -> ChatMessage | None:
    return None if item is NOTHING else messages_from([item])[0]


def messages_from(items: list[Any]) -> list[ChatMessage]:
    """Stored items as messages, those that this version of LlamaIndex knows."""
    return readable(items, ChatMessage.model_validate, "LlamaIndex")
