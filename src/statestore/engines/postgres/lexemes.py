"""Our tokens in PostgreSQL's full-text search: texts as ``tsvector``, queries as ``tsquery``.

A ``tsvector`` holds no position above 16,383, no more than 255 places of one word, and less than a megabyte. Of a text
that goes beyond, all tokens are kept as a line besides, in which every term can be looked for exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from statestore.searching import tokens_of
from statestore.terms import Term

LAST_POSITION: Final = 16_383
MOST_PLACES: Final = 255
MOST_BYTES: Final = 500_000


class Indexed(NamedTuple):
    """A text as the index keeps it."""

    lexemes: str
    line: str | None


def indexed_form(text: str, wanted: Sequence[str] = ()) -> Indexed | None:
    """A text as the index keeps it; ``None`` if there is no word in it, or not all that is wanted in its line."""
    tokens = tokens_of(text)
    if not tokens:
        return None
    line = _line(tokens)
    if not all(piece in line for piece in wanted):
        return None
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens, 1):
        places.setdefault(token, []).append(place)
    is_long = len(tokens) > LAST_POSITION or max(map(len, places.values())) > MOST_PLACES
    room = MOST_BYTES
    lexemes: list[str] = []
    for token, found in places.items():
        kept = [place for place in found[:MOST_PLACES] if place <= LAST_POSITION] or [LAST_POSITION]
        room -= len(token.encode()) + 2 * len(kept) + 6
        if room < 0:
            is_long = True
            break
        lexemes.append(f"{_quoted(token)}:{','.join(map(str, kept))}")
    return Indexed(" ".join(lexemes), line if is_long else None)


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _line(tokens: Sequence[str]) -> str:
    return f" {'  '.join(tokens)} "


def query_of(terms: Sequence[Term]) -> str:
    """PostgreSQL's spelling of a query."""
    return " & ".join(f"({' <-> '.join(map(_quoted, term.tokens))}{':*' if term.is_prefix else ''})" for term in terms)


def wanted_in_line(terms: Sequence[Term]) -> list[str]:
    """What occurs in the line of a text that has all of these terms."""
    lines = [(_line(term.tokens), term.is_prefix) for term in terms]
    return [line[:-1] if is_prefix else line for line, is_prefix in lines]
