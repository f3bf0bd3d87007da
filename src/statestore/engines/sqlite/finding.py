"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import sqlite3

import msgspec

from statestore.engine import SearchQuery
from statestore.engines.fulltext import Match, best_matches, match_at
from statestore.engines.sqlite.indexing import forget_memory, index_in_memory, is_up_to_date
from statestore.engines.sqlite.listing import PROJECT
from statestore.engines.sqlite.places import kind_of_column
from statestore.engines.sqlite.reading import snapshot
from statestore.engines.sqlite.statements import SQL
from statestore.records import decode_body, kind_of
from statestore.searching import snippet_of, text_in
from statestore.stored import SearchHit


def search(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """Hits, best first."""
    hits: list[SearchHit] = []
    after = match_at(query.after)
    with snapshot(connection):
        while (missing := query.limit - len(hits)) > 0:
            matches = best_matches(connection, query, sessions="sessions", project=PROJECT, after=after, limit=missing)
            hits += [hit for match in matches if (hit := _hit(connection, match, query)) is not None]
            if len(matches) < missing:
                break
            after = matches[-1]  # some were removed since they were indexed: look for others
    return hits


def search_only(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """The same without writing: if the index in the file is behind, with one that only this connection has."""
    if is_up_to_date(connection):
        return search(connection, query)
    index_in_memory(connection)
    try:
        return search(connection, query)
    finally:
        forget_memory(connection)


def _hit(connection: sqlite3.Connection, match: Match, query: SearchQuery) -> SearchHit | None:
    if match.seq is None:
        row = connection.execute(SQL["found_title"], (match.number,)).fetchone()
        if row is None:
            return None
        session_id, user_id, title, text = row
        kind = "title"
    else:
        row = connection.execute(SQL["found_record"], (match.place,)).fetchone()
        if row is None:
            return None
        session_id, user_id, title, column, body = row
        kind, text = _said(column, body.encode())
    snippet = snippet_of(text, query.terms)
    return SearchHit(session_id, match.seq, kind, snippet.text, snippet.marks, user_id, title, match.cursor)


def _said(column: int, body: bytes) -> tuple[str, str]:
    """The kind of a record, and its text."""
    kind = kind_of_column(column)
    try:
        return kind_of(decode_body(kind, body)), text_in(kind, body)
    except (msgspec.DecodeError, ValueError):
        return kind, ""
