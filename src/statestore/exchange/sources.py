"""Where an export reads: the sessions of a whole store, or those of one user alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from statestore.copying.walking import session_in_question, session_pages
from statestore.engine import Engine, SessionQuery
from statestore.errors import CorruptData, InvalidName
from statestore.names import check_session_id
from statestore.stored import SessionSummary, StoredSession


class Source:
    """Everybody's sessions, or one owner's: whose a session is, is judged at every read, and others' are not there."""

    def __init__(self, engine: Engine, owner: str | None = None) -> None:
        self._engine = engine
        self._owner = owner

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """As of `Engine.read_session`."""
        stored = await self._engine.read_session(session_id, after=after, before=before, last=last)
        return None if stored is None or self._owner not in (None, stored.fields.user_id) else stored

    def pages(self) -> AsyncIterator[list[SessionSummary]]:
        """All of them, by id."""
        return session_pages(self._engine, user_id=self._owner)

    async def unlisted(self) -> AsyncGenerator[tuple[str, CorruptData | InvalidName]]:
        """The sessions that no listing shows, because they cannot be read, and why.

        Which of them are one owner's, nobody can tell: that there are any is told without an id.
        """
        if self._owner is None:
            async for found in unlisted(self._engine):
                yield found
        elif await self._lacks_some():
            yield "", CorruptData(f"sessions of {self._owner!r} are damaged, and no listing shows them: check() does")

    async def _lacks_some(self) -> bool:
        """Whether there are more sessions than are listed; those that were only deleted meanwhile do not count."""
        query = SessionQuery(user_id=self._owner)
        count, listed = await self._engine.count_sessions(query), 0
        async for page in self.pages():
            listed += len(page)
        is_short = listed < count and listed < await self._engine.count_sessions(query)
        return is_short and bool([found async for found in unlisted(self._engine)])


async def unlisted(engine: Engine) -> AsyncGenerator[tuple[str, CorruptData | InvalidName]]:
    """The sessions of an engine that no listing shows, because they cannot be read, and why."""
    for problem in await engine.check():
        session_id = session_in_question(problem)
        if session_id is not None:
            try:
                await engine.read_session(check_session_id(session_id), last=0)
            except (CorruptData, InvalidName) as error:
                yield session_id, error
