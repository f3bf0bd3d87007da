"""The index of words, for engines that keep one in SQLite: FTS5, a row a record, found by bm25.

A row's number is the place of a record; a title has that of record 0. The caller owns the connection, the table
``sessions`` that says which session has which number, and the moment when words are added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from math import isfinite
from typing import Final, NamedTuple

from statestore.engine import SearchQuery
from statestore.engines.places import SEQ_BITS, number_of, place_of, places_between, seq_of
from statestore.engines.snapshots import snapshot
from statestore.engines.stepping import Room
from statestore.errors import InvalidCursor
from statestore.searching import TITLE_SEQ, index_text, match_expression
from statestore.stored import SearchHit

CREATE_WORDS: Final = "CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'ascii')"


class Match(NamedTuple):
    """A row whose words are the ones that were asked for. The lower the score, the better."""

    place: int
    score: float

    @property
    def number(self) -> int:
        """The session's."""
        return number_of(self.place)

    @property
    def seq(self) -> int | None:
        """The record's; ``None`` for a title."""
        return seq_of(self.place) or None

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        return f"{self.score!r}:{self.place}".encode().hex()


def add_words(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Index some texts by their places, which have no words yet."""
    rows = ((place, index_text(text)) for place, text in texts if text)
    connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)


def remove_words(connection: sqlite3.Connection, number: int, *, after: int | None, room: Room) -> int | None:
    """Forget the words of a session's records above ``after``, the last ones first, as far as there is room.

    Without ``after``, those of the title go too. The number of the last record that still has words; ``None`` if all
    are forgotten.
    """
    first, last = places_between(number, None if after is None else max(after, 0), None)
    query = "SELECT rowid, length(CAST(text AS BLOB)) FROM words WHERE rowid BETWEEN ? AND ? ORDER BY rowid DESC"
    found: list[int] = []
    left: int | None = None
    with closing(connection.execute(query, (first, last))) as rows:
        for place, size in rows:
            if not room.is_left:
                left = seq_of(place)
                break
            room.take(size or 0)
            found.append(place)
    if found:
        connection.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (found[-1], found[0]))
    return left


def set_title_words(connection: sqlite3.Connection, number: int, title: str | None) -> None:
    """Index a session's title in place of the one before."""
    place = place_of(number, TITLE_SEQ)
    connection.execute("DELETE FROM words WHERE rowid = ?", (place,))
    add_words(connection, [(place, title or "")])


def best_matches(
    connection: sqlite3.Connection, query: SearchQuery, *, project: str, after: Match | None, limit: int
) -> list[Match]:
    """What matches, best first, from the row after ``after`` on.

    The table ``sessions`` has the columns ``number`` and ``user_id``, and ``project`` is SQL for a session's project.
    Words of sessions that are not in it do not match.
    """
    where = ["words MATCH ?"]
    values: list[object] = [match_expression(query.terms)]
    if query.user_id is not None:
        where.append("sessions.user_id = ?")
        values.append(query.user_id)
    if query.project_id is not None:
        where.append(f"{project} = ?")
        values.append(query.project_id)
    if after is not None:
        where.append("(words.rank, words.rowid) > (?, ?)")
        values += [after.score, after.place]
    sql = (  # our own names
        f"SELECT words.rowid, words.rank FROM words JOIN sessions ON number = words.rowid >> {SEQ_BITS} "  # noqa: S608
        f"WHERE {' AND '.join(where)} ORDER BY words.rank, words.rowid LIMIT ?"
    )
    return [Match(*row) for row in connection.execute(sql, (*values, min(limit, 2**62)))]


def search_words(
    connection: sqlite3.Connection,
    query: SearchQuery,
    hits_of: Callable[[list[Match]], Iterable[SearchHit]],
    *,
    project: str,
) -> list[SearchHit]:
    """Hits, best first. ``hits_of`` makes them of matches, as far as what matched is still there."""
    hits: list[SearchHit] = []
    after = match_at(query.after)
    with snapshot(connection):
        if after is not None:
            after = _as_it_is_now(connection, query, after)
        while (missing := query.limit - len(hits)) > 0:
            matches = best_matches(connection, query, project=project, after=after, limit=missing)
            hits += hits_of(matches)
            if len(matches) < missing:
                break
            after = matches[-1]  # some were removed since they were indexed: look for others
    return hits


def _as_it_is_now(connection: sqlite3.Connection, query: SearchQuery, match: Match) -> Match:
    """A match with its score of today: scores depend on all that is indexed, so they change when anything is added."""
    sql = "SELECT rank FROM words WHERE words MATCH ? AND rowid = ?"
    row = connection.execute(sql, (match_expression(query.terms), match.place)).fetchone()
    return match if row is None else match._replace(score=row[0])


def match_at(cursor: str | None) -> Match | None:
    """The match behind a cursor; `InvalidCursor` if there is none."""
    if cursor is None:
        return None
    try:
        score, _, place = bytes.fromhex(cursor).decode().partition(":")
        match = Match(int(place), float(score))
    except ValueError:
        match = None
    if match is None or not isfinite(match.score) or match.cursor != cursor or not -(2**63) <= match.place < 2**63:
        raise InvalidCursor(f"{cursor[:60]!r} is not a cursor: pass the .cursor of a hit from search_sessions")
    return match
