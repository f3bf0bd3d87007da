"""Writing sessions: what is new goes in, whoever else is writing; nothing acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from statestore.engine import ChangeSession, DeleteSession, Engine, PreconditionFailed, Requires
from statestore.errors import InvalidValue, SessionConflict, SessionNotFound, WrongUser
from statestore.names import check_session_id
from statestore.records import Record
from statestore.session import Session, ledger_of
from statestore.store.appending import appending
from statestore.store.failures import explained, not_found
from statestore.store.reading import SessionReader, session_from, understanding
from statestore.store.saving import Draft
from statestore.store.settling import note_if_stored

MAX_ATTEMPTS: Final = 1000
"""How often a read-modify-write is tried before somebody must be told that the session never holds still."""


class SessionWriter(SessionReader):
    """Saves and appends: what others wrote meanwhile stays, or the caller is told of a conflict."""

    async def save_session(self, session: Session, *, recreate: bool = False) -> None:
        """Store what changed in a session since it was loaded or saved. Nothing changed, nothing is written.

        Raises `SessionNotFound` if it was deleted meanwhile (``recreate=True`` stores it anew), `SessionConflict`
        if history was edited and somebody else changed the session, or if a new session's id is taken.
        """
        self._check_session(session)
        async with self._host.turn(session):
            try:
                await self._settle(session)
                draft = Draft(session)
                if recreate and draft.change is None and not await self._is_still_there(session):
                    draft = Draft(session, as_new=True)
                await self._store_draft(session, draft)
            except SessionNotFound:
                if not recreate:
                    raise SessionNotFound(
                        f"session {session.id} was deleted since it was loaded; recreate=True stores it anew"
                    ) from None
                await self._store_draft(session, Draft(session, as_new=True))

    async def update_session(self, session: Session) -> None:
        """The seed's other name for `save_session`."""
        await self.save_session(session)

    async def get_or_create_session(self, user_id: str, session_id: str | None = None) -> Session:
        """The user's session with this id, created if there is none; a new one without an id.

        Two callers with one new id get one session. Another user's session raises `WrongUser`.
        """
        session = Session(user_id) if session_id is None else Session(user_id, session_id)
        if self._owner not in (None, session.user_id):
            raise WrongUser(
                f"this store serves {self._owner!r}, and the session would be of {user_id!r}: "
                "the user comes first, then the session's id"
            )
        for _ in range(MAX_ATTEMPTS):
            if session_id is not None:
                found = await self._host.run(lambda engine: self._session_of_user(engine, str(session.id), user_id))
                if found is not None:
                    return found
            try:
                await self._store_draft(session, Draft(session))
            except SessionConflict:
                continue  # somebody was faster: theirs is the session
            return session
        raise SessionConflict(f"session {session_id} was created and deleted {MAX_ATTEMPTS} times meanwhile")

    async def _session_of_user(self, engine: Engine, session_id: str, user_id: str) -> Session | None:
        """The session with this id, if there is one; `WrongUser` if it is another user's."""
        stored = await engine.read_session(session_id)
        if stored is None:
            return None
        if stored.fields.user_id != user_id:
            raise WrongUser(f"session {session_id} does not belong to {user_id!r}")
        return session_from(stored, engine.url)

    async def update_session_with(
        self, session_id: str, change: Callable[[Session], object], *, last: int | None = None
    ) -> Session:
        """Load, change, save, again and again until nobody came between: for counters and the like.

        ``change`` is a plain function; it may be called several times, each time with a fresh session. ``last`` loads
        only its newest records, at most that many: none are needed for a counter in the metadata.
        """
        if not callable(change):
            raise InvalidValue(f"update_session_with takes a function of a session, not {type(change).__name__}")
        for _ in range(MAX_ATTEMPTS):
            session = await self.load_session(session_id, last=last)
            if session is None:
                raise not_found(session_id)
            answer = change(session)
            if hasattr(answer, "__await__"):
                getattr(answer, "close", list)()
                raise InvalidValue("update_session_with takes a plain function, not an async one")
            try:
                await self._store_draft(session, Draft(session, exact=True))
            except SessionConflict:
                continue
            return session
        raise SessionConflict(f"session {session_id} changed {MAX_ATTEMPTS} times while it was being updated")

    async def append(self, session_id: str, *records: Record, keys: Sequence[str | None] | None = None) -> list[int]:
        """Add records to a session without loading it; the number each one got.

        ``keys`` are idempotency keys, one for each record: what has a key that the session knows already is
        acknowledged with its old number, and not stored twice.
        """
        change = appending(session_id, records, keys, self._owner)
        if not records:
            return []
        (outcome,) = await self._commit(change)
        return list(outcome.seqs)

    async def _delete_at_once(self, session_id: str) -> bool:
        """Remove a session for good; whether there was one."""
        change = DeleteSession(check_session_id(session_id), Requires(owner=self._owner))
        try:
            (outcome,) = await self._engine.commit([change])
        except PreconditionFailed:
            return False  # somebody else's: to this user it looks absent
        return outcome.deleted > 0

    async def _store_draft(self, session: Session, draft: Draft) -> None:
        """Send what a draft holds, and let its session know."""
        if draft.change is None:
            return
        self._check_bound(draft.change)
        ledger = ledger_of(session)
        earlier = ledger.unsure
        ledger.unsure = draft  # until it is noted: cancelled, interrupted, or the storage failed, it may have happened
        try:
            (outcome,) = await self._engine.commit([draft.change])
        except PreconditionFailed as failed:
            ledger.unsure = earlier
            raise explained(failed, [draft.change]) from None
        draft.note_stored(outcome, self._engine.url)

    async def _is_still_there(self, session: Session) -> bool:
        """Whether the store has this session, and not another one that took its id since."""
        stored = await self._read(session.id, limit=0)
        return stored is not None and stored.fields.created == session.created_text

    async def _settle(self, session: Session) -> None:
        """After a save with an unknown outcome: look whether it happened, and if so, take note of it.

        `SessionNotFound` if it cannot be told, because the session is gone: it may come back out of the trash.
        """
        ledger = ledger_of(session)
        draft: Draft | None = ledger.unsure
        if draft is None or draft.note_again(self._engine.url):
            return
        stored = await self._engine.read_session(str(session.id))
        is_gone = stored is None or stored.fields.created != session.created_text
        if is_gone and draft.change is not None and draft.change.create is None:
            raise not_found(session.id)
        if stored is not None:
            with understanding(stored.id):
                note_if_stored(draft, stored, self._engine.url)
        ledger.unsure = None

    def _check_session(self, session: Session) -> None:
        """Refuse what is no session, another user's session, and one that was loaded from another store."""
        if not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(
                f"a session is saved, not {type(session).__name__} (load_session gives None where there is no session)"
            )
        origin = ledger_of(session).origin
        if origin is not None and origin.place != self._engine.url:
            raise SessionConflict(
                f"session {session.id} was loaded from {origin.place}, and this is {self._engine.url}"
            )
        if self._owner is not None and session.user_id != self._owner:
            raise WrongUser(f"session {session.id} belongs to {session.user_id!r}, this store serves {self._owner!r}")

    def _check_bound(self, change: ChangeSession) -> None:
        """Refuse a change that could reach another user's session, whatever the object it was made from told before."""
        birth = change.create.user_id if change.create is not None else self._owner
        if self._owner is not None and (change.requires.owner != self._owner or birth != self._owner):
            raise WrongUser(f"session {change.id} does not belong to {self._owner!r}")
