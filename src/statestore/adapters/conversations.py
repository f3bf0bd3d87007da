"""A framework's items in one session: adding, reading, taking back, replacing. Written once for both faces.

Adding is one commit, which also makes the session if it is not there. Whatever changes history carries the version it
was decided on, and is decided again if somebody else wrote meanwhile: two processes on one session lose nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import takewhile
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct, field

from statestore.adapters.access import sessions_of
from statestore.adapters.committing import committed
from statestore.adapters.handoff import stored_items_for
from statestore.adapters.identifiers import birth_metadata, stored_id
from statestore.adapters.items import Carrier, carrier_of
from statestore.adapters.pieces import Pieces
from statestore.engine import DeleteSession, Requires
from statestore.errors import SessionConflict, SessionNotFound, WrongUser
from statestore.names import SessionId
from statestore.records import Record
from statestore.session import Session, ledger_of
from statestore.store.async_store import AsyncStateStore
from statestore.store.sessions import AsyncSessions
from statestore.store.writing import MAX_ATTEMPTS

T = TypeVar("T")
FRAMEWORK: Final = "framework"
"""The metadata key that tells which framework a session was made by."""
NOTHING: Final = UNSET
"""What is given back where there is no item, or no session: ``None`` might be one."""
_NEWEST: Final = 8
"""How many records are looked at for the last item: it and what is told beside it."""


class Conversation(Struct, frozen=True):
    """One session as a framework sees it. `of` makes one; it does no I/O."""

    framework: str
    id: SessionId
    user_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the session gets if it is made here."""

    @classmethod
    def of(
        cls, framework: str, foreign_id: str, *, user_id: str | None = None, metadata: Mapping[str, Any] | None = None
    ) -> Conversation:
        """The conversation with a framework's id, which may be any text.

        With a ``user_id``, it is that user's or nobody's: somebody else's looks absent, and adding to it raises
        `WrongUser`. Without one it is whoever's it is, and a new session belongs to the user ``""``.
        """
        birth = {FRAMEWORK: framework, **birth_metadata(foreign_id), **(metadata or {})}
        return cls(framework, stored_id(foreign_id), user_id, birth)

    async def add(self, store: AsyncStateStore, records: Sequence[Record]) -> list[int]:
        """Append records, in one commit; the numbers they got."""
        sessions = self.sessions(store)
        for _ in range(MAX_ATTEMPTS):
            with suppress(SessionNotFound):
                return await sessions.append(self.id, *records)
            with suppress(SessionConflict):  # somebody was faster: theirs is the session
                return await self.create(store, records)
        raise SessionConflict(f"session {self.id} was made and deleted {MAX_ATTEMPTS} times meanwhile")

    async def create(self, store: AsyncStateStore, records: Sequence[Record] = ()) -> list[int]:
        """Make the session, with its first records; the numbers they got. `SessionConflict` if it is there already."""
        session = self.born()
        rewrite(session, records)
        await self._save_new(store, session)
        return [entry.seq for entry in session.timeline if entry.seq is not None]

    def born(self) -> Session:
        """A new session for the conversation, which is not stored yet."""
        session = Session(self.user_id or "", self.id)
        session.metadata = dict(self.metadata)
        return session

    async def _save_new(self, store: AsyncStateStore, session: Session) -> None:
        try:
            await self.sessions(store).save_session(session)
        except WrongUser:
            if self.user_id is not None:
                raise
            raise SessionConflict(f"session {self.id} exists already") from None

    async def put(self, store: AsyncStateStore, change: Callable[[Session], object]) -> None:
        """Have the session changed, or else a new one, which is stored then; again if somebody came between."""
        for _ in range(MAX_ATTEMPTS):
            with suppress(SessionNotFound):
                await self.sessions(store).update_session_with(self.id, change)
                return
            new = self.born()
            change(new)
            with suppress(SessionConflict):  # somebody was faster: theirs is the session
                await self._save_new(store, new)
                return
        raise SessionConflict(f"session {self.id} was made and deleted {MAX_ATTEMPTS} times meanwhile")

    async def items(self, store: AsyncStateStore, last: int | None = None) -> list[Any]:
        """All items in order, or the last ones; none if there is no session. What others wrote is translated."""
        window = last
        while True:
            try:
                found = await self.sessions(store).timeline_as(self.id, carrier_of(self.framework), limit=window)
                is_foreign = any(carrier.mark is UNSET for _, carrier in found)
                items = await self._items_in(store, found, window, is_foreign=is_foreign)
            except SessionNotFound:
                return []
            if window is None or last is None or len(found) < window:
                break
            if len(items) >= last + is_foreign:  # the first one, if translated, may have begun before the window
                break
            window *= 2  # what is no item took the place of some
        return items if last is None else items[len(items) - min(last, len(items)) :]

    async def _items_in(
        self, store: AsyncStateStore, found: Sequence[tuple[int, Carrier]], window: int | None, *, is_foreign: bool
    ) -> list[Any]:
        if is_foreign:
            entries = await self.sessions(store).timeline(self.id, limit=window)
            return stored_items_for(self.framework, [entry.record for entry in entries])
        return [c.data if c.mark is True else c.mark for _, c in found if c.mark is not False]

    async def pop(self, store: AsyncStateStore) -> Any:
        """Remove the last item and give it back; `NOTHING` if there is none."""

        def take_last(session: Session) -> Any:
            pieces = self._pieces(session)
            if not pieces.found or not pieces.found[-1].is_own:
                return NOTHING
            rewrite(session, pieces.without({len(pieces.items) - 1}))
            return pieces.items[-1]

        item = await self._update(store, take_last, last=_NEWEST)
        return await self.remove(store, -1) if item is NOTHING else item

    async def clear(self, store: AsyncStateStore) -> bool:
        """Remove the session with everything in it; whether there was one."""
        return await self.sessions(store).delete_session(self.id)

    async def take(self, store: AsyncStateStore) -> list[Any] | Any:
        """Remove the session, and give back the items that it had, all of them; `NOTHING` if there is none."""
        for _ in range(MAX_ATTEMPTS):
            session = await self.sessions(store).load_session(self.id, last=0)
            if session is None:
                return NOTHING
            items = await self.items(store)
            as_read = Requires(version=session.version, owner=self.user_id)
            if await committed(store, [DeleteSession(str(self.id), as_read)]) is not None:
                return items
        raise SessionConflict(f"session {self.id} changed {MAX_ATTEMPTS} times while it was being removed")

    async def remove(self, store: AsyncStateStore, place: int) -> Any:
        """Remove the item at a place, counted from the end if it is below 0, and give it back; `NOTHING` if none is.

        What is no item stays, and so do the other items, as whoever wrote them stored them.
        """

        def take(session: Session) -> Any:
            pieces = self._pieces(session)
            items = pieces.items
            if not -len(items) <= place < len(items):
                return NOTHING
            rewrite(session, pieces.without({place % len(items)}))
            return items[place]

        return await self._update(store, take)

    async def replace(self, store: AsyncStateStore, items: Sequence[Any]) -> None:
        """Hold exactly these items. Those that the session begins with already are not written again."""
        await self.put(store, lambda session: self.hold(session, items))

    def hold(self, session: Session, items: Sequence[Any]) -> None:
        """Have a session object hold exactly these items, those that stay the same as they are stored.

        What is no item stays where it is, between them.
        """
        rewrite(session, self._pieces(session).holding(items))

    def _pieces(self, session: Session) -> Pieces:
        return Pieces.of(self.framework, [entry.record for entry in session.timeline])

    async def _update(self, store: AsyncStateStore, change: Callable[[Session], T], last: int | None = None) -> T | Any:
        given: list[T] = []
        try:
            await self.sessions(store).update_session_with(
                self.id, lambda session: given.append(change(session)), last=last
            )
        except SessionNotFound:
            return NOTHING
        return given[-1]

    def sessions(self, store: AsyncStateStore) -> AsyncSessions:
        """The sessions that may be touched: everybody's, or the user's alone."""
        return sessions_of(store, self.user_id)


def rewrite(session: Session, records: Sequence[Record], moved: Callable[[Record], Record] = copy) -> None:
    """Have a session object hold these records, in this order.

    The very records that it begins with stay as they are stored. The rest is stored after them: what was there before
    with the keys that it had, as ``moved`` makes it, under new numbers.
    """
    entries = session.timeline
    same = sum(1 for _ in takewhile(lambda pair: pair[0].record is pair[1], zip(entries, records, strict=False)))
    after = entries[same:]
    ledger = ledger_of(session)
    known = ledger.origin.keys() if ledger.origin and after else {}
    keys = {id(entry.record): known.get(entry.seq or 0) for entry in after}
    _discard(session, keys)
    for record in records[same:]:
        ledger.add(moved(record) if id(record) in keys else record, keys.get(id(record)))


def _discard(session: Session, doomed: Collection[int]) -> None:
    """Take the records with these identities out of a session object."""
    histories: tuple[Any, ...] = (session.user_messages, session.agent_responses, session.events)
    for history in histories:
        if any(id(record) in doomed for record in history):
            history[:] = [record for record in history if id(record) not in doomed]
