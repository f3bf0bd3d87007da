"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import logging
from math import isfinite
from typing import Any, Final, NamedTuple

from statestore.engine import SearchQuery
from statestore.engines.columns import INT_MAX, kind_in, kind_of_column
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.indexing import Pending, pending_of, state_of
from statestore.engines.postgres.lexemes import query_of, wanted_in_line
from statestore.engines.postgres.places import fitted, is_storable
from statestore.engines.postgres.reading import text_of
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import ONE_STATE, transaction
from statestore.errors import InvalidCursor
from statestore.searching import TITLE, TITLE_SEQ, snippet_of, text_to_index
from statestore.stored import SearchHit

_NOTHING = Pending([], {}, [], is_all=True)

_log: Final = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where a page of hits ended: the higher the score, the better; a title has the sequence number 0."""

    score: float
    seq: int
    id: str

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        return f"{self.score!r}:{self.seq}:{self.id}".encode().hex()

    @classmethod
    def parse(cls, cursor: str) -> Place:
        """The place behind a cursor; `InvalidCursor` if there is none."""
        try:
            score, seq, session_id = bytes.fromhex(cursor).decode().split(":", 2)
            place = cls(float(score), int(seq), session_id)
        except ValueError:
            place = None
        if place is None or not _is_possible(place) or place.cursor != cursor:
            raise InvalidCursor(f"{cursor[:60]!r} is not a cursor: pass the .cursor of a hit from search_sessions")
        return place


def _is_possible(place: Place) -> bool:
    return isfinite(place.score) and 0 <= place.score <= 1e6 and 0 <= place.seq <= INT_MAX and is_storable(place.id)


async def search(connection: Connection, query: SearchQuery, pending: Pending = _NOTHING) -> list[SearchHit]:
    """Hits, best first, in the index and in what it does not have yet."""
    after: tuple[Any, ...] = (None, None, None)
    if query.after is not None:
        place = Place.parse(query.after)
        after = (place.score, place.id, place.seq)
    if not is_storable(query.user_id, *(token for term in query.terms for token in term.tokens)):
        return []
    project = None if query.project_id is None else query.project_id.encode(errors="surrogatepass")
    rows = await connection.fetch(
        SQL["search"],
        query_of(query.terms),
        wanted_in_line(query.terms),
        query.user_id,
        project,
        *after,
        fitted(query.limit),
        [session_id for session_id, _, _ in pending.titles],
        *(zip(*pending.words, strict=True) if pending.words else [()] * 5),
    )
    return [hit for hit in (_hit(row, query) for row in rows) if hit is not None]


async def search_only(connection: Connection, query: SearchQuery) -> list[SearchHit]:
    """The same without writing: what the index does not have yet is sent along with the query.

    All of it is of one state of the database. Otherwise what another store indexes meanwhile would be found twice.
    """
    async with transaction(connection, ONE_STATE):
        return await search(connection, query, await _pending(connection))


async def _pending(connection: Connection) -> Pending:
    """What the index does not have yet of any session."""
    state = await state_of(connection)
    if state.is_complete:
        return _NOTHING
    if state.is_usable and state.swept is None:
        rows = await connection.fetch(SQL["changes_to_index"], state.change, INT_MAX)
        ids = {session_id for _, session_id, _ in rows}
    else:
        ids = {session_id for (session_id,) in await connection.fetch(SQL["sessions_to_index"], "", INT_MAX)}
    return await pending_of(connection, list(ids))


def _hit(row: Row, query: SearchQuery) -> SearchHit | None:
    session_id, seq, score, user_id, title, column, content = row
    try:
        if seq == TITLE_SEQ:
            kind, text = TITLE, content.decode()
        else:
            kind, text = kind_in(column, content), text_to_index(kind_of_column(column), content)
        title = text_of(title)
    except UnicodeDecodeError as error:
        _log.warning("session %s is left out of the hits: %s", session_id, error)
        return None
    snippet = snippet_of(text, query.terms)
    cursor = Place(score, seq, session_id).cursor
    return SearchHit(session_id, seq or None, kind, snippet.text, snippet.marks, user_id, title, cursor)
