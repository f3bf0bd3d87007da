"""A thread's session as the saver reads and writes it: by numbers of records, at a version, in one commit.

The store's own methods load whole sessions and merge; a saver needs less, and all of it exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from statestore.adapters.identifiers import birth_metadata, stored_id
from statestore.engine import (
    ChangeSession,
    DeleteSession,
    NewRecord,
    NewSession,
    Outcome,
    PreconditionFailed,
    Requires,
)
from statestore.errors import WrongUser
from statestore.jsontext import json_text
from statestore.records import Record
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.saving import new_record
from statestore.stored import StoredSession
from statestore.timestamps import now_text


class ThreadSession(Struct, frozen=True):
    """Where a thread is kept, and whose it is. It does no I/O by itself."""

    thread_id: str
    id: str
    user_id: str | None

    @classmethod
    def of(cls, thread_id: str, user_id: str | None) -> ThreadSession:
        """The session of a thread, whose id may be any text."""
        return cls(thread_id, str(stored_id(thread_id)), user_id)

    async def read(
        self, store: AsyncStateStore, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """The session with some of its records; ``None`` if there is none, or it is somebody else's."""
        found = await engine_of(store).read_session(self.id, after=after, before=before, last=last)
        return None if found is None or self.user_id not in (None, found.fields.user_id) else found

    async def append(
        self, store: AsyncStateStore, records: Sequence[NewRecord], *, version: Any, created: str, is_new: bool
    ) -> Outcome | None:
        """Add records to the session that was created then, if it is still at a version; or make it.

        ``None`` if it is not (any more) what the caller thinks it is: nothing was written, look again.
        """
        now = created if is_new else now_text()
        if is_new:
            change = ChangeSession(
                id=self.id,
                updated=now,
                requires=Requires(absent=True, owner=self.user_id),
                create=NewSession(self.user_id or "", now),
                append=tuple(records),
                set_metadata={
                    key: json_text(value, key)
                    for key, value in {"framework": "langgraph", **birth_metadata(self.thread_id)}.items()
                },
            )
        else:
            requires = Requires(present=True, version=version, owner=self.user_id, created=created)
            change = ChangeSession(id=self.id, updated=now, requires=requires, append=tuple(records))
        return await self._commit(store, change)

    async def rewrite(
        self, store: AsyncStateStore, records: Sequence[NewRecord], stored: StoredSession, *, opening: str | None
    ) -> Outcome | None:
        """Hold exactly these records, if nobody changed the session since it was read; ``None`` if somebody did."""
        change = ChangeSession(
            id=self.id,
            updated=now_text(),
            requires=Requires(present=True, version=stored.version, owner=self.user_id),
            truncate_after=0,
            append=tuple(records),
            set_fields={"opening": opening},
        )
        return await self._commit(store, change)

    async def delete(self, store: AsyncStateStore, stored: StoredSession) -> bool:
        """Remove the session, if nobody changed it since it was read; whether it is gone."""
        return (
            await self._commit(store, DeleteSession(self.id, Requires(version=stored.version, owner=self.user_id)))
            is not None
        )

    async def _commit(self, store: AsyncStateStore, change: ChangeSession | DeleteSession) -> Outcome | None:
        try:
            (outcome,) = await engine_of(store).commit([change])
        except PreconditionFailed as failed:
            if any(failure.reason == "owner" for failure in failed.failures):
                raise WrongUser(f"thread {self.thread_id} belongs to another user") from None
            return None
        return outcome


def numbered(records: Sequence[Record], first: int) -> list[NewRecord]:
    """Records as an engine takes them, with the numbers that they will have."""
    return [_at(new_record(record), seq) for seq, record in enumerate(records, first)]


def _at(record: NewRecord, seq: int) -> NewRecord:
    return NewRecord(record.kind, record.body, record.timestamp_ns, record.key, seq, record.opening)
