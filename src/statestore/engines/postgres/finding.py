"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from heapq import nsmallest
from math import isfinite
from typing import Any, NamedTuple

from statestore.engine import SearchQuery
from statestore.engines.columns import INT_MAX, kind_in, kind_of_column
from statestore.engines.postgres.cutting import Words
from statestore.engines.postgres.driver import Connection, Row
from statestore.engines.postgres.indexing import unindexed
from statestore.engines.postgres.lexemes import query_of, wanted_in_line
from statestore.engines.postgres.persisting import Attempt
from statestore.engines.postgres.places import fitted, is_storable
from statestore.engines.postgres.reading import text_of
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import ONE_STATE, transaction
from statestore.errors import InvalidCursor
from statestore.searching import TITLE, TITLE_SEQ, snippet_of, text_to_index
from statestore.stored import SearchHit

log = logging.getLogger("statestore")


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


async def search(connection: Connection, query: SearchQuery) -> list[SearchHit]:
    """Hits, best first, in the index."""
    return _hits(await _matches(connection, query), query)


async def search_only(connection: Connection, attempt: Attempt, query: SearchQuery) -> list[SearchHit]:
    """The same without writing: what the index does not have yet is looked through, which takes the time it needs.

    All of it is of one state of the database. Otherwise what another store indexes meanwhile would be found twice.
    """
    async with transaction(connection, ONE_STATE):
        rows = await _matches(connection, query)
        async for words in unindexed(connection, wanted_in_line(query.terms)):
            attempt.go_on()
            if words:
                rows = nsmallest(query.limit, rows + await _matches(connection, query, words), key=_order)
    return _hits(rows, query)


async def _matches(connection: Connection, query: SearchQuery, words: Sequence[Words] | None = None) -> list[Row]:
    """Rows, best first: of the index, or of words that it does not have yet."""
    after: tuple[Any, ...] = (None, None, None)
    if query.after is not None:
        place = Place.parse(query.after)
        after = (place.score, place.id, place.seq)
    if not is_storable(query.user_id, *(token for term in query.terms for token in term.tokens)):
        return []
    project = None if query.project_id is None else query.project_id.encode(errors="surrogatepass")
    return await connection.fetch(
        SQL["search"],
        query_of(query.terms),
        wanted_in_line(query.terms),
        query.user_id,
        project,
        *after,
        fitted(query.limit),
        words is None,
        *(zip(*words, strict=True) if words else [()] * 5),
    )


def _order(row: Row) -> tuple[float, str, int]:
    session_id, seq, score, *_ = row
    return -score, session_id, seq


def _hits(rows: Sequence[Row], query: SearchQuery) -> list[SearchHit]:
    """The hits of some rows, but for those that are damaged."""
    return [hit for hit in (_hit(row, query) for row in rows) if hit is not None]


def _hit(row: Row, query: SearchQuery) -> SearchHit | None:
    session_id, seq, score, user_id, title, column, content = row
    try:
        if seq == TITLE_SEQ:
            kind, text = TITLE, content.decode()
        else:
            kind, text = kind_in(column, content), text_to_index(kind_of_column(column), content)
        title = text_of(title)
    except UnicodeDecodeError as error:
        log.warning("session %s is left out of the hits: %s", session_id, error)
        return None
    snippet = snippet_of(text, query.terms)
    cursor = Place(score, seq, session_id).cursor
    return SearchHit(session_id, seq or None, kind, snippet.text, snippet.marks, user_id, title, cursor)
