"""The index of words, for engines that keep one in SQLite: FTS5, a row a record, found by bm25.

A row's number is its place: the session's number and the record's, or 0 for the title. The caller owns the
connection, the table that says which session has which number, and the moment when words are added.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Final, NamedTuple

from statestore.engine import SearchQuery
from statestore.engines.snapshots import snapshot
from statestore.errors import InvalidCursor
from statestore.searching import TITLE_SEQ, index_text, match_expression
from statestore.stored import SearchHit

SEQ_BITS: Final = 32
LAST_SEQ: Final = (1 << SEQ_BITS) - 1

CREATE_WORDS: Final = "CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'ascii')"


class Match(NamedTuple):
    """A row whose words are the ones that were asked for. The lower the score, the better."""

    place: int
    score: float

    @property
    def number(self) -> int:
        """The session's."""
        return self.place >> SEQ_BITS

    @property
    def seq(self) -> int | None:
        """The record's; ``None`` for a title."""
        return self.place & LAST_SEQ or None

    @property
    def cursor(self) -> str:
        """The form that is handed to users."""
        return f"{self.score!r}:{self.place}".encode().hex()


def add_words(connection: sqlite3.Connection, texts: Iterable[tuple[int, str]]) -> None:
    """Index some texts by their places, which have no words yet."""
    rows = ((place, index_text(text)) for place, text in texts if text)
    connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)


class Removal(NamedTuple):
    """How many rows were removed, and the number of the last one that is still to go; ``None`` if none is."""

    removed: int
    left: int | None


def remove_words(connection: sqlite3.Connection, number: int, *, after: int | None, room: int) -> Removal:
    """Forget the words of a session's records above ``after``, the last ones first, at most ``room`` of them.

    Without ``after``, those of the title go too.
    """
    first = (number << SEQ_BITS) + (0 if after is None else max(after, 0) + 1)
    query = "SELECT rowid FROM words WHERE rowid BETWEEN ? AND ? ORDER BY rowid DESC LIMIT ?"
    found = connection.execute(query, (first, number << SEQ_BITS | LAST_SEQ, max(room, 0) + 1)).fetchall()
    left = found.pop()[0] & LAST_SEQ if len(found) > max(room, 0) else None
    if found:
        connection.execute("DELETE FROM words WHERE rowid BETWEEN ? AND ?", (*found[-1], *found[0]))
    return Removal(len(found), left)


def set_title_words(connection: sqlite3.Connection, number: int, title: str | None) -> None:
    """Index a session's title in place of the one before."""
    place = number << SEQ_BITS | TITLE_SEQ
    connection.execute("DELETE FROM words WHERE rowid = ?", (place,))
    add_words(connection, [(place, title or "")])


def best_matches(
    connection: sqlite3.Connection, query: SearchQuery, *, sessions: str, project: str, after: Match | None, limit: int
) -> list[Match]:
    """What matches, best first, from the row after ``after`` on.

    ``sessions`` is the table of sessions, with the columns ``number`` and ``user_id``; ``project`` is SQL for a
    session's project. Words of sessions that it does not have do not match.
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
        f"SELECT words.rowid, words.rank FROM words JOIN {sessions} AS sessions ON number = words.rowid >> {SEQ_BITS} "  # noqa: S608
        f"WHERE {' AND '.join(where)} ORDER BY words.rank, words.rowid LIMIT ?"
    )
    return [Match(*row) for row in connection.execute(sql, (*values, min(limit, 2**62)))]


def search_words(
    connection: sqlite3.Connection,
    query: SearchQuery,
    hits_of: Callable[[list[Match]], Iterable[SearchHit]],
    *,
    sessions: str,
    project: str,
) -> list[SearchHit]:
    """Hits, best first. ``hits_of`` makes them of matches, as far as what matched is still there."""
    hits: list[SearchHit] = []
    after = match_at(query.after)
    with snapshot(connection):
        if after is not None:
            after = _as_it_is_now(connection, query, after)
        while (missing := query.limit - len(hits)) > 0:
            matches = best_matches(connection, query, sessions=sessions, project=project, after=after, limit=missing)
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
