"""Writing a conversation: its record, the entries it adds, and a note in what it was forked from, in one commit."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord

from statestore.adapters.committing import committed
from statestore.adapters.identifiers import label_of, stored_id
from statestore.adapters.pydantic_ai.entries import branch_record, records_for
from statestore.adapters.pydantic_ai.finding import Finder
from statestore.adapters.pydantic_ai.kept import FORKS, Held, Kept, birth_metadata_for, held_in, metadata_for
from statestore.engine import Change, ChangeSession, NewRecord, NewSession, Requires
from statestore.errors import SessionConflict
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import StoredSession
from statestore.timestamps import now_text, text_of


class Writing:
    """One record on its way into the store, with its new entries."""

    def __init__(self, finder: Finder, record: ConversationRecord, entries: Sequence[ConversationEntry]) -> None:
        self._finder = finder
        self._record = record
        self._entries = entries
        self._id = str(stored_id(record.conversation_id))
        self._user_id = label_of(record.scope or "")

    async def into(self, store: AsyncStateStore, expected_revision: str | None) -> None:
        """Store it, if the stored record has that revision; ``ConversationConflict`` if it has not."""
        for _ in range(MAX_ATTEMPTS):
            stored = await engine_of(store).read_session(self._id, last=0)
            held = Held() if stored is None else held_in(stored)
            kept = held.kept
            if (None if kept is None else kept.revision) != expected_revision or not self._fits_into(stored, held):
                raise ConversationConflict(self._record.conversation_id)
            places = await self._places(store, kept)
            if kept is None and self._id in places.values():  # what a conversation that was deleted left for its forks
                await self._holding(store, self._id, places)
            changes: list[Change] = [self._change(stored, kept, places)]
            for place in sorted({place for place in places.values() if place != self._id}):
                changes += await self._noted_in(store, place, places, is_new=kept is None)
            if await self._committed(store, changes):
                self._finder.learn([entry.id for entry in self._entries], self._id)
                return
        raise SessionConflict(f"conversation {self._id} changed {MAX_ATTEMPTS} times while it was being written")

    def _fits_into(self, stored: StoredSession | None, held: Held) -> bool:
        """Whether the session may hold it: not another program's, nor what another user's conversation left behind."""
        if stored is None:
            return True
        return held.is_ours and (held.kept is not None or stored.fields.user_id == self._user_id)

    async def _places(self, store: AsyncStateStore, kept: Kept | None) -> dict[str, str]:
        """The sessions that the ends of the conversation lie in, those that are not new."""
        new = {entry.id for entry in self._entries}
        parent = self._entries[0].parent_id if self._entries else None
        places: dict[str, str] = {}
        for entry_id in {parent, self._record.head_id, *self._record.branches} - {None, *new}:
            assert entry_id is not None
            place = self._place_in(kept, entry_id) or await self._finder.found(store, entry_id)
            if place is not None:
                places[entry_id] = place
            elif entry_id in (parent, self._record.head_id):
                raise ConversationConflict(self._record.conversation_id)  # somebody deleted what it points to
        return places

    def _place_in(self, kept: Kept | None, entry_id: str) -> str | None:
        """Where an end lies that the stored record has, too."""
        if kept is None:
            return None
        return kept.places.get(entry_id) or (self._id if entry_id == kept.head else None)

    def _change(self, stored: StoredSession | None, kept: Kept | None, places: dict[str, str]) -> ChangeSession:
        record = self._record
        metadata = metadata_for(record, {entry: place for entry, place in places.items() if place != self._id})
        fields = {"project_id": None if record.scope is None else label_of(record.scope)}
        if stored is None:
            metadata = birth_metadata_for(record.conversation_id) | metadata
            if record.forked_from is not None:
                fields["parent_session_id"] = str(stored_id(record.forked_from))
        updated = text_of(record.updated_at)
        return ChangeSession(
            id=self._id,
            updated=updated,
            requires=Requires(absent=True) if stored is None else Requires(version=stored.version),
            create=None if stored else NewSession(self._user_id, now_text()),
            append=tuple(self._records(kept, places)),
            set_fields=fields,
            set_metadata=metadata,
        )

    def _records(self, kept: Kept | None, places: dict[str, str]) -> list[NewRecord]:
        """The new entries, after a word for people if they do not follow the last one."""
        goes_on_from = self._entries[0].parent_id if self._entries else self._record.head_id
        place = places.get(goes_on_from) if goes_on_from is not None else None
        records = records_for(self._entries, None if place == self._id else place)
        if kept is not None and kept.head is not None and kept.head != goes_on_from:
            records.insert(0, branch_record(kept.head, goes_on_from))
        return records

    async def _noted_in(
        self, store: AsyncStateStore, place: str, places: dict[str, str], *, is_new: bool
    ) -> list[Change]:
        """The change that notes this conversation in one that it goes on from, so that it is kept as long as needed."""
        stored = await self._holding(store, place, places)
        held = held_in(stored)
        if self._id in held.forks and not is_new:
            return []
        return [
            ChangeSession(
                id=place,
                updated=stored.fields.updated,
                requires=Requires(present=True, version=stored.version),
                set_metadata={FORKS: json_text([*dict.fromkeys((*held.forks, self._id))], FORKS)},
            )
        ]

    async def _holding(self, store: AsyncStateStore, place: str, places: dict[str, str]) -> StoredSession:
        """A session with the entries that shall lie in it; ``ConversationConflict`` if somebody deleted them."""
        stored = await engine_of(store).read_session(place)
        needed = {entry for entry, where in places.items() if where == place}
        if stored is None or not needed.issubset(stored.records.numbering.keys.values()):
            self._finder.forget(place)
            raise ConversationConflict(self._record.conversation_id)
        return stored

    async def _committed(self, store: AsyncStateStore, changes: list[Change]) -> bool:
        if engine_of(store).atomic_scope == "store":
            return await committed(store, changes) is not None
        for change in reversed(changes):  # one by one: what it goes on from is kept before it is
            if await committed(store, [change]) is None:
                return False
        return True
