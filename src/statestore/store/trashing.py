"""The trash: sessions that were thrown away and can be had back for a while.

It is two documents a session, in a category of the store's own, so every engine has it. A session goes there and is
deleted in one batch; where a batch is one item, it is put there first.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from statestore.engine import (
    Change,
    DeleteDocument,
    DeleteSession,
    DocumentQuery,
    PreconditionFailed,
    PutDocument,
    Requires,
)
from statestore.errors import CorruptSession, InvalidValue, SessionConflict, SessionNotFound
from statestore.names import TRASH, check_session_id
from statestore.session import Session
from statestore.store.failures import explained
from statestore.store.logs import log
from statestore.store.reading import session_from, understanding
from statestore.store.recreating import creation
from statestore.store.writing import MAX_ATTEMPTS, SessionWriter
from statestore.stored import StoredSession
from statestore.trash import Trashed, is_over, may_be_of, packed, unpacked

PAGE: Final = 500
CHUNK: Final = 50
"""How many sessions are removed from the trash at once."""


class Discard(NamedTuple):
    """What moves a session into the trash."""

    content: PutDocument
    note: PutDocument
    end: DeleteSession


class SessionTrasher(SessionWriter):
    """Throws away, and gets back."""

    async def delete_session(self, session_id: str, *, trash_hours: int = 0) -> bool:
        """Remove a session; whether there was one. ``trash_hours`` is how long it can be restored."""
        check_hours(trash_hours)
        if not trash_hours:
            return await self._delete_at_once(session_id)
        for _ in range(MAX_ATTEMPTS):
            stored = await self._read(session_id)
            if stored is None:
                return False
            if await self._throw_away([self._discard(stored, trash_hours)]):
                return True  # else somebody wrote to it meanwhile: what goes is what is there now
        raise SessionConflict(f"session {session_id} changed {MAX_ATTEMPTS} times while it was being thrown away")

    async def list_trash(self) -> list[Trashed]:
        """What can be restored, the last thrown away first."""
        return await self._trash([name async for name in self._everybodys_names()])

    async def restore_session(self, session_id: str) -> Session:
        """Get a session back out of the trash, all of it; of several with this id, the one thrown away last.

        `SessionConflict` if a session has that id again, `SessionNotFound` if the trash has none.
        """
        check_session_id(session_id)
        names = [name async for name in self._everybodys_names() if may_be_of(name, session_id)]
        found = [trashed for trashed in await self._trash(names) if trashed.session.id == session_id]
        if not found:
            raise SessionNotFound(f"there is no session {session_id} in the trash (any more)")
        document = await self._engine.get_document(TRASH, found[0].name, "bin")
        if document is None:
            raise _taken_out(session_id)
        with understanding(session_id):
            thrown = unpacked(document.body)
            change = creation(thrown)
        if (thrown.id, thrown.fields.user_id) != (session_id, found[0].session.user_id):
            raise CorruptSession(f"{TRASH}/{found[0].name}.bin holds another session than the note beside it tells")
        gone = DeleteDocument(TRASH, found[0].name, "bin", Requires(version=document.version))
        if self._engine.atomic_scope == "store":
            batch: list[Change] = [change, gone, DeleteDocument(TRASH, found[0].name, "json")]
        else:  # one by one: whoever dies half-way leaves it in both places, not in none
            batch = [change]
        try:
            await self._engine.commit(batch)
        except PreconditionFailed as failed:
            if failed.failures[0].index:
                raise _taken_out(session_id) from None
            raise explained(failed, batch) from None
        if self._engine.atomic_scope == "item":
            await self._one_by_one(_removal(found[0].name))
        stored = await self._read(session_id)
        if stored is None:
            raise SessionNotFound(f"session {session_id} was restored, and deleted again by somebody else")
        return session_from(stored, self._engine.url)

    async def empty_trash(self) -> int:
        """Remove everything from the trash, also what cannot be read any more; how many sessions there were."""
        names = [name async for name in self._everybodys_names() if await self._is_ours(name)]
        await self._remove(names)
        return len(names)

    async def _remove_what_is_over(self) -> None:
        """Remove what the trash need not keep any longer."""
        now = time.time_ns()
        names: list[str] = []
        async for name in self._everybodys_names():
            if not is_over(name, now):
                break  # they come in the order in which they go
            if await self._is_ours(name):
                names.append(name)
        await self._remove(names)

    async def _throw_away(self, discards: Sequence[Discard]) -> int:
        """Put sessions into the trash and delete them, those that nobody changed since; how many there were."""
        if self._engine.atomic_scope == "item":
            return sum([await self._throw_one_away(discard) for discard in discards])
        while discards:
            try:
                await self._engine.commit([change for discard in discards for change in discard])
            except PreconditionFailed as failed:
                spared = {failure.index // len(Discard._fields) for failure in failed.failures}
                discards = [discard for place, discard in enumerate(discards) if place not in spared]
            else:
                break
        return len(discards)

    def _discard(self, stored: StoredSession, hours: int) -> Discard:
        """The changes that move a session into the trash; `CorruptSession` if it cannot be read."""
        with understanding(stored.id):
            trashed, content = Trashed.of(stored, hours, time.time_ns()), packed(stored)
        return Discard(
            PutDocument(TRASH, trashed.name, "bin", content),
            PutDocument(TRASH, trashed.name, "json", msgspec.json.encode(trashed)),
            DeleteSession(stored.id, Requires(version=stored.version, owner=self._owner)),
        )

    async def _throw_one_away(self, discard: Discard) -> bool:
        """The same where a batch is one item: whoever dies half-way leaves it in both places, not in none."""
        try:
            await self._one_by_one(discard)
        except PreconditionFailed:
            await self._one_by_one(_removal(discard.note.name))
            return False
        return True

    async def _one_by_one(self, changes: Sequence[Change]) -> None:
        for change in changes:
            await self._engine.commit([change])

    async def _remove(self, names: Sequence[str]) -> None:
        """Remove some from the trash, several at once; one after the other where the engine cannot."""
        at_once = CHUNK if self._engine.atomic_scope == "store" else 1
        for start in range(0, len(names), at_once):
            changes = [change for name in names[start : start + at_once] for change in _removal(name)]
            if at_once == 1:
                await self._one_by_one(changes)
            else:
                await self._engine.commit(changes)

    async def _trash(self, names: Iterable[str]) -> list[Trashed]:
        """What these names in the trash stand for, of this owner, the last thrown away first."""
        notes = [await self._note(name) for name in names]
        found = [note for note in notes if note is not None and self._owner in (None, note.session.user_id)]
        return sorted(found, key=lambda trashed: (-trashed.deleted_ns, trashed.session.id))

    async def _is_ours(self, name: str) -> bool:
        """Whether what has this name is of this owner, also if it cannot be restored any more."""
        return self._owner is None or self._owner == await self._owner_of(name)

    async def _everybodys_names(self) -> AsyncIterator[str]:
        """The names of all that is in the trash, in the order in which it goes."""
        query = DocumentQuery(TRASH, limit=PAGE)
        last = None
        while page := await self._engine.list_documents(query):
            for info in page:
                if info.name != last:
                    yield info.name
                last = info.name
            query = DocumentQuery(TRASH, after=(page[-1].name, page[-1].kind), limit=PAGE)

    async def _note(self, name: str) -> Trashed | None:
        document = await self._engine.get_document(TRASH, name, "json")
        return None if document is None else _trashed_in(document.body, name)

    async def _owner_of(self, name: str) -> str | None:
        """Whose session it is: the note tells, or the session itself; ``None`` if neither can be read."""
        trashed = await self._note(name)
        if trashed is not None:
            return trashed.session.user_id
        document = await self._engine.get_document(TRASH, name, "bin")
        try:
            return None if document is None else unpacked(document.body).fields.user_id
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            log().warning("%s/%s.bin cannot be read, so nobody can tell whose it is: %s", TRASH, name, error)
            return None


def _taken_out(session_id: str) -> SessionNotFound:
    return SessionNotFound(f"session {session_id} was taken out of the trash by somebody else")


def _removal(name: str) -> list[Change]:
    return [DeleteDocument(TRASH, name, "json"), DeleteDocument(TRASH, name, "bin")]


def _trashed_in(body: bytes, name: str) -> Trashed | None:
    try:
        trashed = msgspec.json.decode(body, type=Trashed)
        if trashed.name != name:
            raise msgspec.ValidationError(f"it tells of {trashed.name[:80]}")
        return trashed
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log().warning("%s/%s.json is left out of the trash: it cannot be read: %s", TRASH, name, error)
        return None


def check_hours(hours: object) -> None:
    """Refuse what is no number of hours."""
    if type(hours) is not int or hours < 0:
        raise InvalidValue(f"trash_hours is a whole number from 0 up, not {hours!r}")
