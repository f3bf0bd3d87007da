"""Going another way: a fork leaves the original as it is, a rewind drops what came after a point."""

from __future__ import annotations

from msgspec.structs import replace

from statestore.engine import ChangeSession, NewSession, PreconditionFailed, Requires
from statestore.errors import InvalidValue, SessionConflict
from statestore.records import USER
from statestore.session import Session
from statestore.store.failures import explained, not_found
from statestore.store.reading import entries_of, understanding
from statestore.store.recreating import creation
from statestore.store.writing import MAX_ATTEMPTS, SessionWriter
from statestore.stored import StoredSession
from statestore.timeline import TimelineEntry
from statestore.timestamps import now_text


class SessionBrancher(SessionWriter):
    """Makes forks, which leave the original as it is, and rewinds, which hand out what they drop."""

    async def fork_session(self, session_id: str, *, at: int | None = None, new_id: str | None = None) -> Session:
        """A new session that begins as a copy: all records, or those up to number ``at``. The original stays.

        Records keep their bodies, numbers and keys. The new session has the project and the metadata, too, so that a
        total that is kept there is in both; its ``parent_session_id`` names the original.
        """
        before = None if at is None else _check_seq("at", at) + 1
        change = await self._made_of(session_id, lambda stored: _fork_of(stored, new_id), before=before)
        if change is None:
            raise not_found(session_id)
        await self._commit(change)
        created = await self.load_session(change.id)
        if created is None:
            raise not_found(change.id)
        return created

    async def rewind_session(self, session_id: str, *, to: int) -> list[TimelineEntry]:
        """Drop every record after number ``to``; what was dropped. Numbers are never given out twice."""
        _check_seq("to", to)
        for _ in range(MAX_ATTEMPTS):
            found = await self._made_of(session_id, lambda stored: (stored, entries_of(stored)), after=to)
            if found is None:
                raise not_found(session_id)
            stored, removed = found
            if not removed:
                return []
            is_mute = stored.message_count == sum(entry.kind == USER for entry in removed)
            change = ChangeSession(
                id=stored.id,
                updated=now_text(),
                requires=Requires(present=True, version=stored.version, owner=self._owner),
                truncate_after=to,
                set_fields={"opening": None} if is_mute else {},
            )
            try:
                await self._engine.commit([change])
            except PreconditionFailed as failed:
                if failed.failures[0].reason == "version":
                    continue
                raise explained(failed, [change]) from None
            return removed
        raise SessionConflict(f"session {session_id} changed {MAX_ATTEMPTS} times while it was being rewound")


def _fork_of(stored: StoredSession, new_id: str | None) -> ChangeSession:
    """What makes a new session of a stored one."""
    fork = Session(stored.fields.user_id, new_id)
    with understanding(stored.id):
        copy = creation(stored, is_whole=False)
    return replace(
        copy,
        id=str(fork.id),
        updated=fork.updated_text,
        create=NewSession(fork.user_id, fork.created_text, stored.layout),
        set_fields=copy.set_fields | {"parent_session_id": stored.id},
    )


def _check_seq(name: str, seq: object) -> int:
    if type(seq) is not int or seq < 0:
        raise InvalidValue(f"{name} is the number of a record, from 0 up, not {seq!r}")
    return seq
