"""Going another way: a fork leaves the original as it is, a rewind drops what came after a point."""

from __future__ import annotations

import msgspec

from statestore.engine import ChangeSession, NewRecord, NewSession, PreconditionFailed, Requires
from statestore.errors import InvalidValue, SessionConflict
from statestore.jsontext import members
from statestore.labels import labels_in, opening_of
from statestore.records import USER, decode_body
from statestore.session import Session
from statestore.store.failures import explained, not_found
from statestore.store.reading import entries_of, understanding
from statestore.store.writing import MAX_ATTEMPTS, SessionWriter
from statestore.stored import StoredRecord, StoredSession
from statestore.timeline import TimelineEntry
from statestore.timestamps import nanoseconds, now_text


class SessionBrancher(SessionWriter):
    """Forks and rewinds."""

    async def fork_session(self, session_id: str, *, at: int | None = None, new_id: str | None = None) -> Session:
        """A new session that begins as a copy: all records, or those up to number ``at``. The original stays.

        Records keep their bodies, numbers and keys; the new session's ``parent_session_id`` names the original.
        """
        stored = await self._read(session_id, before=None if at is None else _check_seq("at", at) + 1)
        if stored is None:
            raise not_found(session_id)
        fork = Session(stored.fields.user_id, new_id)
        with understanding(stored.id):
            change = ChangeSession(
                id=str(fork.id),
                updated=fork.updated_text,
                requires=Requires(absent=True),
                create=NewSession(fork.user_id, fork.created_text, stored.layout),
                append=tuple(map(_copied, stored.records.in_order())),
                set_fields=_fields_of(stored) | {"parent_session_id": stored.id},
                set_metadata=members(stored.metadata),
            )
        await self._commit(change)
        created = await self.load_session(fork.id)
        if created is None:
            raise not_found(fork.id)
        return created

    async def rewind_session(self, session_id: str, *, to: int) -> list[TimelineEntry]:
        """Drop every record after number ``to``; what was dropped. Numbers are never given out twice."""
        _check_seq("to", to)
        for _ in range(MAX_ATTEMPTS):
            stored = await self._read(session_id, after=to)
            if stored is None:
                raise not_found(session_id)
            with understanding(stored.id):
                removed = entries_of(stored.records)
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


def _check_seq(name: str, seq: object) -> int:
    if type(seq) is not int or seq < 0:
        raise InvalidValue(f"{name} is the number of a record, from 0 up, not {seq!r}")
    return seq


def _copied(record: StoredRecord) -> NewRecord:
    moment = nanoseconds(decode_body(record.kind, record.body).timestamp_text)
    return NewRecord(record.kind, record.body, moment, record.key, record.seq)


def _fields_of(stored: StoredSession) -> dict[str, str | None]:
    """The fields and labels that a copy of this session starts with."""
    metadata = msgspec.json.decode(stored.metadata)
    users = stored.records.decoded().users
    fields = labels_in(metadata, metadata) | {
        "active_seed_id": stored.fields.active_seed_id,
        "active_persona_id": stored.fields.active_persona_id,
        "project_id": stored.fields.project_id,
        "opening": opening_of(users[0].content) if users else None,
    }
    return {name: value for name, value in fields.items() if value is not None}
