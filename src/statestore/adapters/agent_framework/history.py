"""The history of conversations, for agents of the Agent Framework."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from agent_framework import HistoryProvider, Message

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.agent_framework.replays import what_is_new
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.agent_framework import NAME, records_of
from statestore.adapters.identifiers import joined_text
from statestore.adapters.items import readable
from statestore.store.async_store import AsyncStateStore

_MANY: Final = 100


class StateStoreHistoryProvider(ClosesItsStore, HistoryProvider):
    """A `HistoryProvider`: the messages of conversations, each in a session of its own.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and `close` closes it. With a ``user_id`` the sessions are that user's, and nobody else's are
    ever touched. ``metadata`` is what a new session gets. ``last`` loads only so many of the newest messages.

    A provider with a ``source_id`` of its own, such as one that only keeps a record of what was said, has sessions of
    its own: ``<session id>:<source id>``. The other options are those of every `HistoryProvider`.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "statestore"

    def __init__(
        self,
        store: Target,
        *,
        source_id: str = DEFAULT_SOURCE_ID,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        last: int | None = None,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded
        self.last = last
        self._access = Access(store, opens="async")
        self._user_id = user_id
        self._metadata = dict(metadata or {})

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a conversation, in order; what other frameworks wrote into it is translated."""
        place = self._conversation(session_id)
        items = await self._access.run(lambda store: place.items(store, self.last))
        is_long = len(items) > _MANY  # making so many messages takes longer than a loop should wait
        messages = await asyncio.to_thread(messages_from, items) if is_long else messages_from(items)
        if self.skip_excluded:
            return [one for one in messages if not one.additional_properties.get("_excluded", False)]
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add messages, all in one commit. What the conversation ends with already is not added again."""
        items = [message.to_dict() for message in messages]
        place = self._conversation(session_id)
        for item in items:
            records_of(item)  # what cannot be kept is refused before anything is read

        async def add(store: AsyncStateStore) -> None:
            known = await place.items(store, len(items))
            new = [record for item in what_is_new(known, items) for record in records_of(item)]
            if new:
                await place.add(store, new)

        if items:
            await self._access.run(add)

    def _conversation(self, session_id: str | None) -> Conversation:
        named = "default" if session_id is None else session_id
        if self.source_id != self.DEFAULT_SOURCE_ID:
            named = joined_text(named, self.source_id)
        return Conversation.of(NAME, named, user_id=self._user_id, metadata=self._metadata)


def messages_from(items: list[Any]) -> list[Message]:
    """Stored items as messages, those that this version of the framework knows."""
    return readable(items, Message.from_dict, "the Agent Framework")
