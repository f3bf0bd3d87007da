"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence

import msgspec

from statestore.engine import SearchQuery
from statestore.engines.columns import PROJECT, kind_in, kind_of_column
from statestore.engines.fulltext import Match, search_words
from statestore.engines.snapshots import snapshot
from statestore.engines.sqlite.indexing import (
    forget_memory,
    has_seen,
    index_in_memory,
    is_damage_of_index,
    last_change,
)
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.tolerating import damaged_as_bytes
from statestore.searching import TITLE, snippet_of, text_to_index
from statestore.stored import SearchHit

log = logging.getLogger("statestore")


def search(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """Hits, best first."""

    def hits_of(matches: list[Match]) -> Iterator[SearchHit]:
        return _hits(connection, matches, query)

    return search_words(connection, query, hits_of, project=PROJECT)


def search_up_to(connection: sqlite3.Connection, query: SearchQuery, change: int) -> list[SearchHit] | None:
    """The same; ``None`` if the index has not seen a change. Somebody may begin it anew at any moment."""
    with snapshot(connection):
        return search(connection, query) if has_seen(connection, change) else None


def search_only(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """The same without writing: if the index in the file is behind or damaged, with one of this connection alone."""
    try:
        hits = search_up_to(connection, query, last_change(connection))
    except sqlite3.DatabaseError as error:
        if not is_damage_of_index(error):
            raise
        hits = None
    if hits is not None:
        return hits
    try:
        index_in_memory(connection)
        return search(connection, query)
    finally:
        forget_memory(connection)


def _hits(connection: sqlite3.Connection, matches: Sequence[Match], query: SearchQuery) -> Iterator[SearchHit]:
    """What was found, as far as it is still there."""
    places = msgspec.json.encode([match.place for match in matches]).decode()
    with damaged_as_bytes(connection):
        rows = {
            row[0]: row[1:]
            for name in ("found_records", "found_titles")
            for row in connection.execute(SQL[name], (places,))
        }
    for match in matches:
        if match.place in rows:
            session_id, user_id, title, column, content = rows[match.place]
            if isinstance(title, bytes):
                log.warning("session %s is left out of the hits: its title is not UTF-8", session_id)
                continue
            kind, text = (TITLE, content)
            if match.seq is not None:
                kind, text = kind_in(column, content), text_to_index(kind_of_column(column), content)
            snippet = snippet_of(text, query.terms)
            yield SearchHit(session_id, match.seq, kind, snippet.text, snippet.marks, user_id, title, match.cursor)
