"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from statestore.engine import SearchQuery
from statestore.engines.fulltext import Match, best_matches, match_at
from statestore.engines.sqlite.indexing import forget_memory, has_seen, index_in_memory, last_change
from statestore.engines.sqlite.listing import PROJECT
from statestore.engines.sqlite.places import EVENT, kind_of_column
from statestore.engines.sqlite.reading import snapshot
from statestore.engines.sqlite.statements import SQL
from statestore.errors import InvalidValue
from statestore.records import decode_body, kind_of
from statestore.searching import snippet_of, text_in
from statestore.stored import SearchHit

TITLE: Final = "title"
"""What a hit in a title has for a kind."""


def search(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """Hits, best first."""
    hits: list[SearchHit] = []
    after = match_at(query.after)
    with snapshot(connection):
        while (missing := query.limit - len(hits)) > 0:
            matches = best_matches(connection, query, sessions="sessions", project=PROJECT, after=after, limit=missing)
            hits += _hits(connection, matches, query)
            if len(matches) < missing:
                break
            after = matches[-1]  # some were removed since they were indexed: look for others
    return hits


def search_only(connection: sqlite3.Connection, query: SearchQuery) -> list[SearchHit]:
    """The same without writing: if the index in the file is behind, with one that only this connection has."""
    if has_seen(connection, last_change(connection)):
        return search(connection, query)
    index_in_memory(connection)
    try:
        return search(connection, query)
    finally:
        forget_memory(connection)


def _hits(connection: sqlite3.Connection, matches: Sequence[Match], query: SearchQuery) -> Iterator[SearchHit]:
    """What was found, as far as it is still there."""
    places = msgspec.json.encode([match.place for match in matches]).decode()
    rows = {
        row[0]: row[1:]
        for name in ("found_records", "found_titles")
        for row in connection.execute(SQL[name], (places,))
    }
    for match in matches:
        if match.place in rows:
            session_id, user_id, title, column, content = rows[match.place]
            kind, text = (TITLE, content) if match.seq is None else _said(column, content.encode())
            snippet = snippet_of(text, query.terms)
            yield SearchHit(session_id, match.seq, kind, snippet.text, snippet.marks, user_id, title, match.cursor)


def _said(column: int, body: bytes) -> tuple[str, str]:
    """The kind of a record, and its text."""
    kind = kind_of_column(column)
    try:
        text = text_in(kind, body)
        return (kind_of(decode_body(kind, body)) if kind == EVENT else kind), text
    except (msgspec.DecodeError, InvalidValue):
        return kind, ""  # not a record: check() tells
