"""Searching: from what the index of words finds to hits that tell where, and show the words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from statestore.engine import SearchQuery
from statestore.engines.files.image import SessionImage
from statestore.engines.files.looking import Looker
from statestore.engines.fulltext import Match, search_words
from statestore.errors import CorruptSession, StoreUnavailable
from statestore.searching import TITLE, snippet_of, text_to_index
from statestore.stored import SearchHit


class _Found(NamedTuple):
    """The session of a match, as the log has it."""

    id: str
    user_id: str
    created: str
    title: str | None
    given_title: str | None
    version: str


def search(connection: sqlite3.Connection, looker: Looker, query: SearchQuery) -> list[SearchHit]:
    """Hits, best first."""

    def hits_of(matches: list[Match]) -> Iterator[SearchHit]:
        return _hits(connection, looker, matches, query)

    return search_words(connection, query, hits_of, project="project")


def _hits(
    connection: sqlite3.Connection, looker: Looker, matches: Sequence[Match], query: SearchQuery
) -> Iterator[SearchHit]:
    """What was found, as far as it is still there; one session after the other, so that none is parsed twice."""
    found: dict[int, SearchHit] = {}
    for number, some in groupby(sorted(matches), key=lambda match: match.number):
        row = connection.execute(
            "SELECT id, user_id, created, title, given_title, version FROM sessions WHERE number = ?", (number,)
        ).fetchone()
        session = _Found(*row)
        image = _image(looker, session)
        if image is not None:
            found |= {match.place: hit for match in some if (hit := _hit(session, image, match, query)) is not None}
    return (found[match.place] for match in matches if match.place in found)


def _hit(session: _Found, image: SessionImage, match: Match, query: SearchQuery) -> SearchHit | None:
    if match.seq is None:
        kind, text = TITLE, session.given_title or ""
    else:
        record = next(image.text.ordered().one_by_one(match.seq - 1, match.seq + 1), None)
        if record is None:
            return None
        kind, text = record.kind, text_to_index(record.kind, record.body)
    snippet = snippet_of(text, query.terms)
    if not snippet.marks and str(image.version) != session.version:
        return None  # rewritten since it was indexed
    return SearchHit(
        session.id, match.seq, kind, snippet.text, snippet.marks, session.user_id, session.title, match.cursor
    )


def _image(looker: Looker, session: _Found) -> SessionImage | None:
    """The session's file, if it still is that session's."""
    try:
        image = looker.image(session.id)
    except (CorruptSession, StoreUnavailable):
        return None
    if image is None or (image.text.fields.user_id, image.text.fields.created) != (session.user_id, session.created):
        return None
    return image
