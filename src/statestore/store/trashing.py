"""The trash: sessions that were thrown away and can be had back for a while.

It is two documents a session, in a category of the store's own, so every engine has it. A session goes there and is
deleted in one batch; where a batch is one item, it is put there first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import msgspec

from statestore.counts import check_whole_number
from statestore.engine import (
    Change,
    DeleteDocument,
    DeleteSession,
    PreconditionFailed,
    PutDocument,
    Requires,
)
from statestore.errors import SessionConflict, SessionNotFound
from statestore.names import TRASH, check_session_id
from statestore.session import Session
from statestore.store.failures import explained
from statestore.store.in_trash import names_in_trash, names_of_owner, notes_in_trash, taken_from_trash, taken_out
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.store.singly import commit_each
from statestore.store.writing import MAX_ATTEMPTS, SessionWriter
from statestore.stored import StoredSession, Version
from statestore.trash import Trashed, is_over, may_be_of, packed

CHUNK: Final = 50
"""How many sessions are looked at in the trash, or removed from it, at once."""


class Discard(NamedTuple):
    """What moves a session into the trash."""

    content: PutDocument
    note: PutDocument
    end: DeleteSession


class SessionTrasher(SessionWriter):
    """Deletes sessions, for good or so that they can be had back whole for a while."""

    async def delete_session(self, session_id: str, *, trash_hours: int = 0) -> bool:
        """Remove a session; whether there was one. ``trash_hours`` is how long it can be restored."""
        check_whole_number("trash_hours", trash_hours)
        if not trash_hours:
            return await self._delete_at_once(session_id)
        for _ in range(MAX_ATTEMPTS):
            discard = await self._made_of(session_id, lambda stored: self._discard(stored, trash_hours))
            if discard is None:
                return False
            if await self._throw_away([discard]):
                return True  # else somebody wrote to it meanwhile: what goes is what is there now
        raise SessionConflict(f"session {session_id} changed {MAX_ATTEMPTS} times while it was being thrown away")

    async def list_trash(self) -> list[Trashed]:
        """What can be restored, the last thrown away first."""
        return await self._notes(lambda _: True)

    async def restore_session(self, session_id: str) -> Session:
        """Get a session back out of the trash, all of it; of several with this id, the one thrown away last.

        `SessionConflict` if a session has that id again, `SessionNotFound` if the trash has none.
        """
        check_session_id(session_id)
        notes = await self._notes(lambda name: may_be_of(name, session_id))
        found = [trashed for trashed in notes if trashed.session.id == session_id]
        if not found:
            raise SessionNotFound(f"there is no session {session_id} in the trash (any more)")
        change, version = await self._host.run(lambda engine: taken_from_trash(engine, found[0]))
        gone = DeleteDocument(TRASH, found[0].name, "bin", Requires(version=version))
        if self._engine.atomic_scope == "store":
            batch: list[Change] = [change, gone, DeleteDocument(TRASH, found[0].name, "json")]
        else:  # one by one: whoever dies half-way leaves it in both places, not in none
            batch = [change]
        try:
            created, *_ = await self._engine.commit(batch)
        except PreconditionFailed as failed:
            if failed.failures[0].index:
                raise taken_out(session_id) from None
            raise explained(failed, batch) from None
        if self._engine.atomic_scope == "item":
            await self._take_out(session_id, gone, created.version)
            await self._one_by_one(_removal(found[0].name))
        restored = await self.load_session(session_id)
        if restored is None:
            raise SessionNotFound(f"session {session_id} was restored, and deleted again by somebody else")
        return restored

    async def _take_out(self, session_id: str, gone: DeleteDocument, version: Version | None) -> None:
        """Remove the content of what was restored. If somebody was faster, what was restored is not to be there."""
        try:
            await self._engine.commit([gone])
        except PreconditionFailed:
            with suppress(PreconditionFailed):  # somebody has written to it: then it is theirs
                await self._engine.commit([DeleteSession(session_id, Requires(version=version))])
            raise taken_out(session_id) from None

    async def empty_trash(self) -> int:
        """Remove everything from the trash, also what cannot be read any more; how many sessions there were."""
        return await self._remove_while(lambda _: True)

    async def _remove_what_is_over(self) -> None:
        """Remove what the trash need not keep any longer."""
        now = time.time_ns()
        await self._remove_while(lambda name: is_over(name, now))  # they come in the order in which they go

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
        """The changes that move a session into the trash; `CorruptSession` if it could not be restored from there."""
        with understanding(stored.id):
            creation(stored)  # raises where this cannot be done
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

    async def _notes(self, is_wanted: Callable[[str], bool]) -> list[Trashed]:
        """What the wanted names in the trash stand for, if it is this owner's; the last thrown away first."""
        names = [name async for name in names_in_trash(self._engine) if is_wanted(name)]
        notes = [note for chunk in _chunks(names) for note in await self._read_notes(chunk)]
        found = [note for note in notes if self._owner in (None, note.session.user_id)]
        return sorted(found, key=lambda trashed: (-trashed.deleted_ns, trashed.session.id))

    async def _read_notes(self, names: Sequence[str]) -> list[Trashed]:
        return await self._host.run(lambda engine: notes_in_trash(engine, names))

    async def _remove_while(self, is_wanted: Callable[[str], bool]) -> int:
        """Remove what is this owner's from the trash, up to the first name that is not wanted; how many there were."""
        names: list[str] = []
        async for name in names_in_trash(self._engine):
            if not is_wanted(name):
                break
            names.append(name)
        removed = 0
        for chunk in _chunks(names):
            removed += await self._remove(await self._ours(chunk))
        return removed

    async def _ours(self, names: Sequence[str]) -> Sequence[str]:
        """Those names in the trash that stand for what is this owner's."""
        owner = self._owner
        return names if owner is None else await self._host.run(lambda engine: names_of_owner(engine, owner, names))

    async def _remove(self, names: Sequence[str]) -> int:
        """Remove some from the trash, at once; of how many there was still something."""
        removals = list(map(_removal, names))
        if self._engine.atomic_scope == "store":
            outcomes = await self._engine.commit([change for removal in removals for change in removal])
            deleted = [outcome.deleted for outcome in outcomes]
            return sum(map(max, deleted[::2], deleted[1::2]))
        was_there: set[str] = set()
        for step in zip(*removals, strict=True):  # first the notes, which tell of the contents
            for name, result in zip(names, await commit_each(self._engine, step), strict=True):
                if isinstance(result, Exception):
                    raise result
                if result[0].deleted:
                    was_there.add(name)
        return len(was_there)


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    """So many at a time that nobody else waits for long."""
    return (names[start : start + CHUNK] for start in range(0, len(names), CHUNK))


def _removal(name: str) -> list[Change]:
    return [DeleteDocument(TRASH, name, "json"), DeleteDocument(TRASH, name, "bin")]
