"""The messages of one Strands agent within a session that several agents may share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from statestore.adapters.conversations import Conversation, rewrite
from statestore.adapters.dialects.strands import AGENT_FIELD, NAME, records_of
from statestore.adapters.handoff import dialect_of, turns_of
from statestore.adapters.items import Carrier, carrier_of, is_aside, item_in
from statestore.adapters.turns import Turn
from statestore.errors import SessionNotFound
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore
from statestore.timeline import TimelineEntry

_NEWEST: Final = 16
"""How many records are looked at first for a message to change: it is nearly always the last one."""


class _AgentCarrier(Carrier):
    """What is read of a record: its item, and whose message it is."""

    agent: Any = None


_CARRIER: Final = cast(
    "type[_AgentCarrier]",
    msgspec.defstruct(
        "AgentCarrier",
        [("agent", Any, msgspec.field(default=None, name=AGENT_FIELD))],
        bases=(carrier_of(NAME),),
        gc=False,
    ),
)


class AgentMessages(Struct, frozen=True):
    """An agent's messages in a session."""

    conversation: Conversation
    agent_id: str

    async def items(self, store: AsyncStateStore) -> list[dict[str, Any]]:
        """All of them, in order; what other frameworks wrote is translated."""
        sessions = self.conversation.sessions(store)
        try:
            found = await sessions.timeline_as(self.conversation.id, _CARRIER)
            if any(carrier.is_foreign for _, carrier in found):
                return _in_order(self._items_in(await sessions.timeline(self.conversation.id)))
        except SessionNotFound:
            return []
        return _in_order([one.item for _, one in found if not one.is_aside and one.agent in (None, self.agent_id)])

    def _items_in(self, entries: Sequence[TimelineEntry]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        foreign: list[Turn] = []
        for entry in entries:
            item = item_in(NAME, entry.record)
            if item is UNSET:
                foreign += turns_of(entry.record)
            elif self._is_mine(entry):
                items += _continued(items, foreign)
                foreign = []
                items.append(item)
        return items + _continued(items, foreign)

    async def change(
        self, store: AsyncStateStore, number: int, created_at: str, change: Callable[[dict[str, Any]], Any]
    ) -> bool:
        """Replace the message with a number, of several the one of that moment; whether there was one."""
        for last in (_NEWEST, None):
            done: list[bool] = []
            try:
                await self.conversation.sessions(store).update_session_with(
                    self.conversation.id,
                    lambda session, done=done, is_whole=last is None: done.append(
                        self._replace(session, number, created_at, change, is_whole=is_whole)
                    ),
                    last=last,
                )
            except SessionNotFound:
                return False
            if done[-1]:
                return True
        return False

    def _replace(
        self,
        session: Session,
        number: int,
        created_at: str,
        change: Callable[[dict[str, Any]], Any],
        *,
        is_whole: bool,
    ) -> bool:
        """Replace the message of that moment; if the whole session has none, the last with the number."""
        entries = session.timeline
        mine = [
            (index, item)
            for index, entry in enumerate(entries)
            if self._is_mine(entry)
            and (item := item_in(NAME, entry.record)) is not UNSET
            and item.get("message_id") == number
        ]
        of_that_moment = [one for one in mine if one[1].get("created_at") == created_at]
        chosen = of_that_moment[:1] or (mine[-1:] if is_whole else [])
        if not chosen:
            return False
        start, item = chosen[0]
        end = start + 1
        while end < len(entries) and is_aside(NAME, entries[end].record):
            end += 1
        records = [entry.record for entry in entries]
        rewrite(session, [*records[:start], *records_of(change(item), self.agent_id), *records[end:]])
        return True

    def _is_mine(self, entry: TimelineEntry) -> bool:
        return entry.record.extra.get(AGENT_FIELD, self.agent_id) == self.agent_id


def _continued(items: Sequence[dict[str, Any]], turns: Sequence[Turn]) -> list[dict[str, Any]]:
    """Turns as messages, numbered on from those before them."""
    first = int(items[-1].get("message_id", -1)) + 1 if items else 0
    written = dialect_of(NAME).write(turns) if turns else []
    return [{**item, "message_id": first + number} for number, item in enumerate(written)]


def _in_order(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By their numbers, as the framework has them; where a number was given twice, as they were added."""
    numbers = [item.get("message_id", 0) for item in items]
    if len(set(numbers)) < len(numbers) or numbers == sorted(numbers):
        return items
    return sorted(items, key=lambda item: item.get("message_id", 0))
