"""Sessions of the OpenAI Agents SDK in a statestore: ``Runner.run(agent, "Hi", session=StateStoreSession(…))``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.conversations import NOTHING, Conversation
from statestore.adapters.dialects.openai_agents import NAME, record_of
from statestore.adapters.requirements import check_version, unavailable
from statestore.errors import InvalidValue

try:
    from agents.memory import SessionSettings
except ImportError as error:
    raise unavailable("openai-agents") from error
check_version("openai-agents")

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

__all__ = ["StateStoreSession"]


class StateStoreSession(ClosesItsStore):
    """A `Session` of the SDK: one conversation, kept in a statestore.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and ``await session.close()`` closes it. Any number of session objects, tasks and processes may
    use one conversation at once; nothing that was added is lost.

    With a ``user_id`` the session is that user's, and another user's session of the same id is never touched.
    ``metadata`` is what a new session gets: ``{"title": …, "project_id": …}`` are shown by listings.
    """

    session_settings: SessionSettings | None

    def __init__(
        self,
        session_id: str,
        store: Target,
        *,
        user_id: str | None = None,
        session_settings: SessionSettings | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else session_settings
        self._access = Access(store, opens="async")
        self._conversation = Conversation.of(NAME, session_id, user_id=user_id, metadata=metadata)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items in order, exactly as they were added; the latest ``limit`` of them, or as the settings say."""
        last = self._limit() if limit is None else limit
        if last is not None and last < 0:  # as in the SDK's own sessions
            last = None
        return await self._access.run(lambda store: self._conversation.items(store, last))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items, all in one commit."""
        if isinstance(items, (str, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"items are a list of dicts, not {type(items).__name__}: nothing was stored")
        records = [record_of(item) for item in items]
        if records:
            await self._access.run(lambda store: self._conversation.add(store, records))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and give it back; ``None`` if there is none. No two callers get the same one."""
        item = await self._access.run(self._conversation.pop)
        return None if item is NOTHING else item

    async def clear_session(self) -> None:
        """Remove the session with all its items."""
        await self._access.run(self._conversation.clear)

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Hold exactly these items, in one commit; whether it was done. The SDK's compaction asks for it by this name.

        A subclass may store items in another form: for one, the SDK clears the session and adds the items.
        """
        if type(self) is not StateStoreSession:
            return False
        await self._access.run(lambda store: self._conversation.replace(store, items))
        return True

    def _limit(self) -> int | None:
        return None if self.session_settings is None else self.session_settings.limit
