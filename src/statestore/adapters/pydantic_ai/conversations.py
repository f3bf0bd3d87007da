"""`StateStoreConversations`: Pydantic AI's contract for storing conversations, on a statestore."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord, ConversationStore

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.identifiers import label_of, stored_id
from statestore.adapters.pydantic_ai.deleting import delete
from statestore.adapters.pydantic_ai.finding import Finder
from statestore.adapters.pydantic_ai.histories import history
from statestore.adapters.pydantic_ai.kept import Kept, held_in, record_in
from statestore.adapters.pydantic_ai.writing import Writing
from statestore.adapters.several import for_each
from statestore.errors import CorruptData
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.logs import log
from statestore.stored import SessionSummary

_PAGE: Final = 500
_KEPT: Final = 20_000
"""Of how many sessions it is kept in mind what they hold."""


class _Known(Struct, frozen=True, gc=False):
    version: str
    kept: Kept | None


class StateStoreConversations(ClosesItsStore, ConversationStore):
    """Conversations of Pydantic AI, kept in a statestore: durable, shared by processes, readable by people.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and ``await conversations.close()`` closes it.

    A conversation is a session, each message is stored once, and a fork points into the session it was forked from.
    Deleting a conversation erases its messages, unless forks still need them; then they go with the last fork.
    """

    def __init__(self, store: Target) -> None:
        self._access = Access(store, opens="async")
        self._finder = Finder()
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """The record of a conversation."""
        return await self._access.run(lambda store: self._record_of(store, conversation_id))

    async def _record_of(self, store: AsyncStateStore, conversation_id: str) -> ConversationRecord | None:
        stored = await engine_of(store).read_session(str(stored_id(conversation_id)), last=0)
        kept = None if stored is None else held_in(stored).kept
        return None if stored is None or kept is None else self._record(stored.id, kept)

    def _record(self, session_id: str, kept: Kept) -> ConversationRecord:
        record = record_in(kept)
        for entry_id in (record.head_id, *record.branches):
            if entry_id is not None:
                self._finder.learn([entry_id], kept.places.get(entry_id, session_id))
        return record

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """The records, newest first. What did not change since the last listing is not read again."""
        return await self._access.run(lambda store: self._records_in(store, scope, limit))

    async def _records_in(
        self, store: AsyncStateStore, scope: str | None, limit: int | None
    ) -> list[ConversationRecord]:
        found: list[ConversationRecord] = []
        project = None if scope is None else label_of(scope)
        cursor = None
        size = _PAGE if limit is None else min(limit, _PAGE)
        while limit is None or len(found) < limit:
            page = await store.list_sessions(project_id=project, limit=size, after=cursor)
            for session_id, kept in (await self._kept_in(store, page)).items():
                if kept is not None and scope in (None, kept.scope):
                    found.append(self._record(session_id, kept))
            if len(page) < size:
                break
            cursor = page[-1].cursor
        found.sort(key=lambda record: record.updated_at, reverse=True)
        return found if limit is None else found[:limit]

    async def _kept_in(self, store: AsyncStateStore, page: Sequence[SessionSummary]) -> dict[str, Kept | None]:
        """What listed sessions keep, by their ids, in order."""
        known = {one.id: self._known.get(one.id) for one in page}
        unknown = [one.id for one in page if (held := known[one.id]) is None or held.version != one.version]
        read = dict(zip(unknown, await for_each(store, unknown, lambda one: _read(store, one)), strict=True))
        known |= read
        self._known |= {session_id: held for session_id, held in read.items() if held is not None}
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return {session_id: None if held is None else held.kept for session_id, held in known.items()}

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record with its new entries, in one commit, over the one with that revision."""
        writing = Writing(self._finder, record, new_entries)
        await self._access.run(lambda store: writing.into(store, expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation with its entries; those that forks need are kept until the last fork is gone."""
        await self._access.run(lambda store: delete(store, self._finder, conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """The entry with this id. One that was not read or written here before is looked for in all sessions."""
        found = await self.read_history(entry_id, limit=1)
        if not found:
            raise LookupError(f"entry {entry_id!r} cannot be read")
        return found[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """The entries up to one, or the last so many: one read for each session that the history leads through."""
        if head_id is None or limit == 0:
            return []
        return await self._access.run(lambda store: history(store, self._finder, head_id, limit))


async def _read(store: AsyncStateStore, session_id: str) -> _Known | None:
    """A session as it is now; ``None`` if it is gone, or cannot be read."""
    try:
        stored = await engine_of(store).read_session(session_id, last=0)
        return None if stored is None else _Known(str(stored.version), held_in(stored).kept)
    except CorruptData as error:
        log().warning("session %s cannot be listed: %s", session_id, error)
        return None
