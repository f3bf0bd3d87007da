"""Our tokens in PostgreSQL's full-text search: texts as ``tsvector``, queries as ``tsquery``.

A ``tsvector`` holds no position above 16,383, no more than 255 places of one word, and less than a megabyte. Of a text
that goes beyond, all tokens are kept as a line besides, in which every term can be looked for exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from operator import add
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
    if not tokens or (wanted and not _has_all(_line(tokens), wanted)):
        return None
    lexemes = _all_places(tokens)
    return Indexed(_some_places(tokens), _line(tokens)) if lexemes is None else Indexed(lexemes, None)


def _has_all(line: str, wanted: Sequence[str]) -> bool:
    return all(piece in line for piece in wanted)


def _all_places(tokens: Sequence[str]) -> str | None:
    """Every token with its place, which PostgreSQL sorts by itself; ``None`` if that is too much for it."""
    if len(tokens) > LAST_POSITION or (len(tokens) > MOST_PLACES and max(Counter(tokens).values()) > MOST_PLACES):
        return None
    lexemes = f"'{''.join(map(add, tokens, _ends()))}"[:-2]  # there is nothing in a token that needs a backslash
    return lexemes if len(lexemes.encode()) <= MOST_BYTES else None


@cache  # made when they are needed
def _ends() -> Sequence[str]:
    """What comes after each token: its place, and the beginning of the next one."""
    return [f"':{place} '" for place in range(1, LAST_POSITION + 1)]


def _some_places(tokens: Sequence[str]) -> str:
    """As much of it as there is room for."""
    places: dict[str, list[int]] = {}
    for place, token in enumerate(tokens, 1):
        places.setdefault(token, []).append(place)
    room = MOST_BYTES
    lexemes: list[str] = []
    for token, found in places.items():
        kept = [place for place in found[:MOST_PLACES] if place <= LAST_POSITION] or [LAST_POSITION]
        room -= len(token.encode()) + 2 * len(kept) + 6
        if room < 0:
            break
        lexemes.append(f"'{token}':{','.join(map(str, kept))}")
    return " ".join(lexemes)


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
