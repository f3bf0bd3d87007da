"""LangChain's chat message history in a statestore: ``StateStoreChatMessageHistory("trip", "state.db")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from statestore.adapters.access import Access, ClosesEitherWay, Target
from statestore.adapters.conversations import Conversation
from statestore.adapters.dialects.langchain import NAME, records_of
from statestore.adapters.items import readable
from statestore.adapters.requirements import check_version, unavailable
from statestore.errors import InvalidValue
from statestore.records import Record

try:
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
except ImportError as error:
    raise unavailable("langchain") from error
check_version("langchain")

__all__ = ["StateStoreChatMessageHistory"]


class StateStoreChatMessageHistory(ClosesEitherWay, BaseChatMessageHistory):
    """The messages of one conversation, kept in a statestore.

    ``store`` is an open `StateStore` or `AsyncStateStore`, or a URL or path: then it is opened on first use, and
    `close` closes it. The asynchronous methods do not block their loop, whichever it is. With a ``user_id`` the session
    is that user's, and nobody else's is ever touched. ``metadata`` is what a new session gets.
    """

    def __init__(
        self,
        session_id: str,
        store: Target,
        *,
        user_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.session_id = session_id
        self._access = Access(store, opens="plain")
        self._conversation = Conversation.of(NAME, session_id, user_id=user_id, metadata=metadata)

    @property
    def messages(self) -> list[BaseMessage]:  # pyright: ignore[reportIncompatibleVariableOverride] - as in LangChain's own
        """All messages, in order."""
        return messages_from(self._access.call(self._conversation.items))

    async def aget_messages(self) -> list[BaseMessage]:
        """All messages, in order."""
        return messages_from(await self._access.run(self._conversation.items))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, all in one commit."""
        records = _records(messages)
        if records:
            self._access.call(lambda store: self._conversation.add(store, records))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages, all in one commit."""
        records = _records(messages)
        if records:
            await self._access.run(lambda store: self._conversation.add(store, records))

    def clear(self) -> None:
        """Remove the session with all its messages."""
        self._access.call(self._conversation.clear)

    async def aclear(self) -> None:
        """Remove the session with all its messages."""
        await self._access.run(self._conversation.clear)


def _records(messages: Sequence[BaseMessage]) -> list[Record]:
    for message in messages:
        if not isinstance(message, BaseMessage):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"a message is one of LangChain's, not {type(message).__name__}: nothing was stored")
    return [record for message in messages for record in records_of(message_to_dict(message))]


def messages_from(items: list[Any]) -> list[BaseMessage]:
    """Stored items as messages, those that this version of LangChain knows."""
    return readable(items, lambda item: messages_from_dict([item])[0], "LangChain")
