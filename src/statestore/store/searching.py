"""Finding words in sessions, on engines that can."""

from __future__ import annotations

from typing import Final

from statestore.engine import SearchQuery
from statestore.errors import InvalidCursor, InvalidValue
from statestore.jsontext import check_text
from statestore.store.capabilities import searching
from statestore.store.reading import SessionReader, check_count
from statestore.stored import SearchHit

HITS: Final = 50


class SessionSearcher(SessionReader):
    """Finds words in all that was acknowledged before, of everybody or of the one user whom the store serves."""

    async def search_sessions(
        self,
        query: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        limit: int = HITS,
        after: str | None = None,
    ) -> list[SearchHit]:
        """Where some words occur, best first: in messages, responses, events and titles.

        All words must occur; ``"quoted words"`` follow each other, ``begin*`` finds what begins so. Any text is a valid
        query. ``after=hit.cursor`` goes on where a page ended.
        """
        from statestore.searching import parse_query  # noqa: PLC0415 - its rules take a while to load

        terms = parse_query(check_query(query))
        for name, value in (("user_id", user_id), ("project_id", project_id)):
            if value is not None:
                check_text(value, name)
        if after is not None and not isinstance(after, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidCursor(f"after is the .cursor of a hit, not {type(after).__name__}")
        count = check_count("limit", limit)
        if count is None:
            raise InvalidValue("limit is a whole number from 0 up: a search has no end that is worth waiting for")
        engine = searching(self._engine)
        if not terms or not count or (self._owner is not None and user_id not in (None, self._owner)):
            return []
        return await engine.search_sessions(
            SearchQuery(terms, user_id if self._owner is None else self._owner, project_id, after, count)
        )


def check_query(query: object) -> str:
    """A query is a text, any text, even one with characters that cannot be stored."""
    if isinstance(query, str):
        return query
    return check_text(query, "a query")
