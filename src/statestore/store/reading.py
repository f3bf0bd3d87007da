"""Reading sessions: one whole, its newest part, a page of its timeline; listing and counting many."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from typing import Literal, TypeVar

import msgspec

from statestore.counts import check_whole_number
from statestore.engine import Engine, SessionQuery
from statestore.errors import CorruptSession, InvalidValue
from statestore.host import Host
from statestore.jsontext import check_text
from statestore.names import check_session_id
from statestore.records import latest_moment
from statestore.session import Session, session_of
from statestore.store.decoding import decoded_as, decoded_body_as
from statestore.store.failures import not_found
from statestore.store.logs import log
from statestore.store.paging import read_page
from statestore.store.part import StorePart
from statestore.stored import Cursor, SessionSummary, StoredSession
from statestore.timeline import Column, TimelineEntry, in_order
from statestore.timestamps import nanoseconds, text_of

T = TypeVar("T")


class SessionReader(StorePart):
    """What can be learnt about sessions: everybody's, or one owner's."""

    def __init__(self, host: Host, owner: str | None) -> None:
        self._host = host
        self._owner = owner

    async def load_session(self, session_id: str, *, last: int | None = None) -> Session | None:
        """The session, or ``None``. ``last`` loads only its newest records, at most that many."""
        is_part = check_count("last", last) is not None
        place = self._engine.url
        return await self._made_of(session_id, lambda stored: session_from(stored, place, is_part=is_part), limit=last)

    async def session_exists(self, session_id: str) -> bool:
        """Whether there is such a session."""
        return await self._read(session_id, limit=0) is not None

    async def list_sessions(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        parent_session_id: str | None = None,
        updated_since: datetime | None = None,
        top_level: bool = False,
        order: Literal["updated", "id"] = "updated",
        limit: int | None = None,
        after: str | None = None,
    ) -> list[SessionSummary]:
        """Summaries, newest first or by id; ``after=summary.cursor`` goes on where a page ended.

        While others write, a session that nobody touched appears exactly once, a touched one at most once;
        ``order="id"`` misses nothing.
        """
        query = self._query(user_id, project_id, parent_session_id, updated_since, top_level, order, limit, after)
        return [] if query is None else await self._engine.list_sessions(query)

    async def count_sessions(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        parent_session_id: str | None = None,
        updated_since: datetime | None = None,
        top_level: bool = False,
    ) -> int:
        """How many sessions there are."""
        query = self._query(user_id, project_id, parent_session_id, updated_since, top_level)
        return 0 if query is None else await self._engine.count_sessions(query)

    async def timeline(
        self, session_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[TimelineEntry]:
        """The records numbered above ``after`` and below ``before``, in order: at most ``limit``, the newest ones.

        ``before=entries[0].seq`` pages backwards. ``after=entries[-1].seq`` gives what came since; with ``after``
        alone, ``limit`` means the oldest ones, so that reading on in pages misses none.
        """
        return await self._made_of_part(session_id, entries_of, after, before, limit)

    async def timeline_as(
        self,
        session_id: str,
        type: type[T],
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[tuple[int, T]]:
        """The records that `timeline` gives, each with its number.

        Each record's JSON is decoded as ``type``, once: any type that ``msgspec`` knows. A struct that names only the
        fields it wants is the fastest way to read many. A record that is not of that type is left out, and a warning
        names it: it hides no other one.
        """

        def decoded(stored: StoredSession) -> list[tuple[int, T]] | StoredSession:
            try:
                return decoded_as(stored.records, type)
            except (msgspec.DecodeError, ValueError, RecursionError):
                return stored

        found = await self._made_of_part(session_id, decoded, after, before, limit)
        return await self._readable_as(found, type) if isinstance(found, StoredSession) else found

    async def _readable_as(self, stored: StoredSession, type: type[T]) -> list[tuple[int, T]]:
        """The records that can be decoded, one by one; read one by one, too, if some cannot even be told apart."""
        with understanding(stored.id):
            numbers = stored.records.numbering
        try:
            bodies = {record.seq: record.body for record in stored.records.in_order()}
        except (msgspec.DecodeError, ValueError, RecursionError):
            bodies = {}
        found: list[tuple[int, T]] = []
        for seq in numbers.in_order():
            try:
                if seq in bodies:
                    found.append((seq, decoded_body_as(bodies[seq], type)))
                else:
                    one = await self._read(stored.id, after=seq - 1, before=seq + 1)
                    found += [] if one is None else decoded_as(one.records, type)
            except (msgspec.DecodeError, ValueError, RecursionError, CorruptSession) as error:
                log().warning("session %s: record %d cannot be read, and is left out: %s", stored.id, seq, error)
        return found

    async def _made_of_part(
        self,
        session_id: str,
        make: Callable[[StoredSession], T],
        after: int | None,
        before: int | None,
        limit: int | None,
    ) -> T:
        """What is made of a session with the records that were asked for."""
        made = await self._made_of(
            session_id,
            make,
            after=check_count("after", after),
            before=check_count("before", before),
            limit=check_count("limit", limit),
        )
        if made is None:
            raise not_found(session_id)
        return made

    async def _read(
        self, session_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> StoredSession | None:
        """A session as stored, if it is there and is this owner's to see."""
        return await self._made_of(session_id, lambda stored: stored, after=after, before=before, limit=limit)

    async def _made_of(
        self,
        session_id: str,
        make: Callable[[StoredSession], T],
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> T | None:
        """What is made of a session, if it is there and is this owner's to see.

        It is made where the engine runs: a long session takes time to decode, too.
        """
        session_id = check_session_id(session_id)

        async def read_and_make(engine: Engine) -> T | None:
            stored = await read_page(engine, session_id, after=after, before=before, limit=limit)
            if stored is None or self._owner not in (None, stored.fields.user_id):
                return None
            return make(stored)

        return await self._host.run(read_and_make)

    def _query(
        self,
        user_id: str | None,
        project_id: str | None,
        parent_session_id: str | None,
        updated_since: datetime | None,
        top_level: bool,
        order: Literal["updated", "id"] = "updated",
        limit: int | None = None,
        after: str | None = None,
    ) -> SessionQuery | None:
        if order not in ("updated", "id"):
            raise InvalidValue(f"order is 'updated' or 'id', not {order!r}")
        if self._owner is not None and user_id not in (None, self._owner):
            return None
        labels = {"user_id": user_id, "project_id": project_id, "parent_session_id": parent_session_id}
        texts = {name: None if value is None else check_text(value, name) for name, value in labels.items()}
        return SessionQuery(
            user_id=texts["user_id"] if self._owner is None else self._owner,
            project_id=texts["project_id"],
            parent_session_id=texts["parent_session_id"],
            top_level=top_level,
            updated_since_ns=None if updated_since is None else nanoseconds(text_of(updated_since)),
            order=order,
            after=None if after is None else Cursor.parse(after),
            limit=check_count("limit", limit),
        )


def session_from(stored: StoredSession, place: str, *, is_part: bool = False) -> Session:
    """The session object for what an engine at this place read."""
    with understanding(stored.id):
        return session_of(stored, place, is_part=is_part)


@contextmanager
def understanding(session_id: str) -> Generator[None]:
    """While what is stored of a session is being decoded: `CorruptSession` if it cannot be."""
    try:
        yield
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise CorruptSession(f"session {session_id} cannot be read: {error}") from error


def entries_of(stored: StoredSession) -> list[TimelineEntry]:
    """The records of a session, each with its place, as they follow each other."""
    with understanding(stored.id):
        decoded = stored.records.decoded()
        latest_moment(*decoded)  # raises if one of them tells none
        columns = zip(decoded, stored.records.numbering.columns, strict=True)
        return in_order([Column(column, column, seqs) for column, seqs in columns], ())


def check_count(name: str, value: int | None) -> int | None:
    """A number of things to return: a whole number from 0 up, or ``None`` for all."""
    return None if value is None else check_whole_number(name, value)
