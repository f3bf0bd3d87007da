"""A conversation as LlamaIndex's memory sees it: a queue whose oldest messages are archived or dropped.

Archiving is a mark in the session's metadata: everything up to a record's number is archived. So it costs the same
however long the session is, and what is archived stays where it was said. A message that was added as archived says so
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct

from statestore.adapters.conversations import Conversation, rewrite
from statestore.adapters.dialects.llama_index import NAME, records_of
from statestore.adapters.pieces import Pieces
from statestore.errors import SessionConflict, SessionNotFound
from statestore.jsontext import joined_members, members
from statestore.records import Record, body_of, decode_body, kind_of
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore
from statestore.store.writing import MAX_ATTEMPTS
from statestore.timeline import TimelineEntry

Status = Literal["active", "archived"]
ARCHIVED_TO: Final = "llama_index_archived_to"
"""The metadata key with the number of the last record that is archived."""


class Row(Struct, frozen=True):
    """A message of the queue: the number of its record, itself, and whether it is archived."""

    seq: int
    item: Any
    is_archived: bool


class _Stored(Struct, gc=False):
    mark: Any = msgspec.field(name=NAME, default=UNSET)
    data: Any = UNSET
    archived: bool = False


class Queue(Struct, frozen=True):
    """The messages of one key."""

    conversation: Conversation

    async def rows(self, store: AsyncStateStore, status: Status | None) -> list[Row]:
        """The messages of a status, or all, in order. Reading the active ones costs nothing for the archived."""
        return (await self._versioned_rows(store, status))[1]

    async def _versioned_rows(self, store: AsyncStateStore, status: Status | None) -> tuple[str | None, list[Row]]:
        """The same, with the version of the session before they were read."""
        sessions = self.conversation.sessions(store)
        try:
            session = await sessions.load_session(self.conversation.id, last=0)
            if session is None:
                return None, []
            archived_to = _archived_to(session)
            after = archived_to if status == "active" else None
            found = await sessions.timeline_as(self.conversation.id, _Stored, after=after)
            if any(stored.mark is UNSET for _, stored in found):
                _, rows = _rows_of(await sessions.timeline(self.conversation.id), archived_to)
            else:
                rows = [
                    Row(seq, stored.data if stored.mark is True else stored.mark, stored.archived or seq <= archived_to)
                    for seq, stored in found
                    if stored.mark is not False
                ]
        except SessionNotFound:
            return None, []
        return session.version, _selected(rows, status)

    async def add(self, store: AsyncStateStore, items: Sequence[Any], status: Status) -> None:
        """Add messages, all in one commit."""
        records = [record for item in items for record in _records_for(item, is_archived=status == "archived")]
        if records:
            await self.conversation.add(store, records)

    async def archive_oldest(self, store: AsyncStateStore, count: int) -> list[Any]:
        """Archive the oldest active messages, at most so many; no two callers archive the same one."""
        for _ in range(MAX_ATTEMPTS):
            version, active = await self._versioned_rows(store, "active")
            rows = active[: max(count, 0)]
            if not rows or await self._is_marked(store, version, rows[-1].seq):
                return [row.item for row in rows]
        raise SessionConflict(f"session {self.conversation.id} changed {MAX_ATTEMPTS} times while it was archived")

    async def _is_marked(self, store: AsyncStateStore, version: str | None, last: int) -> bool:
        """Archive up to a number; whether the session was still at the version at which that was decided."""
        moved: list[bool] = []

        def mark(session: Session) -> None:
            moved.append(session.version == version)
            if moved[-1]:
                session.set_metadata(ARCHIVED_TO, last)

        try:
            await self.conversation.sessions(store).update_session_with(self.conversation.id, mark, last=0)
        except SessionNotFound:
            return False
        return moved[-1]

    async def change(self, store: AsyncStateStore, choose: Callable[[list[Row]], list[Row]]) -> list[Row]:
        """Remove the rows that are chosen, and give them back; again if somebody came between."""
        gone: list[list[Row]] = []

        def remove(session: Session) -> None:
            pieces, rows = _rows_in(session)
            chosen = choose(rows)
            gone.append(chosen)
            doomed = {id(row) for row in chosen}
            _rewrite(session, pieces, rows, [place for place, row in enumerate(rows) if id(row) in doomed])

        try:
            await self.conversation.sessions(store).update_session_with(self.conversation.id, remove)
        except SessionNotFound:
            return []
        return gone[-1]

    async def replace(self, store: AsyncStateStore, items: Sequence[Any], status: Status) -> None:
        """Hold exactly these messages."""
        records = [record for item in items for record in _records_for(item, is_archived=status == "archived")]

        def put(session: Session) -> None:
            pieces, rows = _rows_in(session)
            _rewrite(session, pieces, rows, range(len(rows)), records)

        if records:
            await self.conversation.put(store, put)
        else:
            with suppress(SessionNotFound):
                await self.conversation.sessions(store).update_session_with(self.conversation.id, put)


def _records_for(item: Any, *, is_archived: bool) -> Sequence[Record]:
    return records_of(item, archived=True) if is_archived else records_of(item)


def _archived_to(session: Session) -> int:
    mark = session.get_metadata(ARCHIVED_TO)
    return mark if isinstance(mark, int) else 0


def _rows_in(session: Session) -> tuple[Pieces, list[Row]]:
    return _rows_of(session.timeline, _archived_to(session))


def _rows_of(entries: Sequence[TimelineEntry], archived_to: int) -> tuple[Pieces, list[Row]]:
    """The messages in a timeline, those of other frameworks translated one by one, and the pieces that they are in."""
    pieces = Pieces.of(NAME, [entry.record for entry in entries], is_apart=True)
    rows: list[Row] = []
    for piece in pieces.found:
        seq, _, record = entries[piece.first]
        says_so = msgspec.json.decode(body_of(record), type=_Stored).archived
        rows += [Row(seq or 0, item, says_so or (seq or 0) <= archived_to) for item in piece.items]
    return pieces, rows


def _rewrite(
    session: Session, pieces: Pieces, rows: Sequence[Row], gone: Collection[int], new: Sequence[Record] = ()
) -> None:
    """Take the rows at some places out of a session, and add records. What is archived stays so, where it goes."""
    archived = {id(row.item) for row in rows if row.is_archived}
    firsts = {id(pieces.records[piece.first]) for piece in pieces.found if archived.intersection(map(id, piece.items))}
    left = pieces.without(gone, lambda item: _records_for(item, is_archived=id(item) in archived))
    rewrite(session, [*left, *new], lambda record: _as_archived(record) if id(record) in firsts else copy(record))


def _as_archived(record: Record) -> Record:
    return decode_body(kind_of(record), joined_members(members(body_of(record)) | {"archived": b"true"}))


def _selected(rows: list[Row], status: Status | None) -> list[Row]:
    return rows if status is None else [row for row in rows if row.is_archived == (status == "archived")]
