"""Showing what was found: a piece of the text, and where in it the words are."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Final, NamedTuple
from unicodedata import category

from msgspec import Struct

from statestore.searching.tokens import MAX_WORD, fold, pairs_of, token_pattern
from statestore.terms import Term


class Snippet(Struct, frozen=True):
    """A piece of a text, and where in it something was found: ``[start, end)`` each, in order, apart."""

    text: str
    marks: tuple[tuple[int, int], ...]


class _Mark(NamedTuple):
    start: int
    end: int
    term: int


def snippet_of(text: str, terms: Sequence[Term], *, width: int = 160) -> Snippet:
    """The piece of a text in which most of the terms occur, its white space folded, with ``…`` where it was cut.

    It has at most ``width`` characters besides the ``…``; only what is longer than that is marked in part.
    """
    shown = " ".join(text.split())
    marks = _marks_in(shown, terms)
    start, end = _window(shown, marks, max(width, 1))
    whole = [(mark.start, mark.end) for mark in marks if start <= mark.start and mark.end <= end]
    if not whole:
        whole = [(mark.start, end) for mark in marks if start <= mark.start < end][:1]
    before, after = "…" if start else "", "…" if end < len(shown) else ""
    shift = len(before) - start
    return Snippet(before + shown[start:end] + after, tuple((a + shift, b + shift) for a, b in _merged(whole)))


def _merged(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The same places, those that overlap as one."""
    open_start = open_end = 0
    for start, end in spans:
        if start >= open_end:
            if open_end:
                yield open_start, open_end
            open_start = start
        open_end = max(open_end, end)
    if open_end:
        yield open_start, open_end


_SNAP: Final = 20
"""How far a cut moves to fall between words."""


def _window(text: str, marks: Sequence[_Mark], width: int) -> tuple[int, int]:
    """Where to cut a text to this width, so that marks of as many terms as possible are in it."""
    if len(text) <= width:
        return 0, len(text)
    first, last = _best_stretch(marks, width)
    spare = width - (last - first)
    start = max(0, min(first - spare // 2, len(text) - width))
    end = start + width
    if start:
        start = text.find(" ", start - 1, min(first, start + _SNAP)) + 1 or start
    if end < len(text):
        space = text.rfind(" ", max(last, end - _SNAP), end + 1)
        end = end if space < 0 else space
    return start, end


def _best_stretch(marks: Sequence[_Mark], width: int) -> tuple[int, int]:
    """From which mark to which most terms occur within this width; the first of equals."""
    if not marks:
        return 0, 0
    best, best_count = (marks[0].start, min(marks[0].end, marks[0].start + width)), 0
    inside: dict[int, int] = {}
    first = 0
    for mark in marks:
        if mark.end - mark.start > width:
            continue
        inside[mark.term] = inside.get(mark.term, 0) + 1
        while mark.end - marks[first].start > width:
            out = marks[first]
            first += 1
            if out.term in inside and out.end - out.start <= width:
                inside[out.term] -= 1
                if not inside[out.term]:
                    del inside[out.term]
        if len(inside) > best_count:
            best, best_count = (marks[first].start, mark.end), len(inside)
    return best


def _marks_in(text: str, terms: Sequence[Term]) -> list[_Mark]:
    """Where each term occurs in a text, in order."""
    if text.isascii():
        lower = text.lower()
        found = (_Mark(*match.span(), n) for n, term in enumerate(terms) for match in _ascii_form(term).finditer(lower))
        return sorted(found)
    tokens, places = _located(text)
    line = f" {' '.join(tokens)} "
    starts = list(accumulate((len(token) + 1 for token in tokens), initial=0))
    marks: list[_Mark] = []
    for number, term in enumerate(terms):
        wanted = f" {' '.join(term.tokens)}" + ("" if term.is_prefix else " ")
        at = line.find(wanted)
        while at >= 0:
            first = bisect_left(starts, at)
            last = first + len(term.tokens) - 1
            ends = places.ends if tokens[last] == term.tokens[-1] else places.first_ends
            marks.append(_Mark(places.starts[first], ends[last], number))
            at = line.find(wanted, starts[last + 1])
    marks.sort()
    return marks


@lru_cache(maxsize=256)
def _ascii_form(term: Term) -> re.Pattern[str]:
    """What a term looks like in a text of lower case ASCII."""
    words = [re.escape(token) + ("[0-9a-z]*" if len(token) == MAX_WORD else "") for token in term.tokens]
    end = "[0-9a-z]*" if term.is_prefix else "(?![0-9a-z])"
    return re.compile(f"(?<![0-9a-z]){'[^0-9a-z]+'.join(words)}{end}")


class _Places(NamedTuple):
    """Where each token stands in a text; of a pair of characters, where the first one ends too."""

    starts: list[int]
    ends: list[int]
    first_ends: list[int]


_PIECE: Final = re.compile(r"[^\s\x00-/:-@\[-`{-\x7f]+")


def _located(text: str) -> tuple[list[str], _Places]:
    """The tokens of a text, and where each one stands."""
    tokens: list[str] = []
    places = _Places([], [], [])
    for match in _PIECE.finditer(text):
        piece = match[0]
        if piece.isascii():
            tokens.append(piece[:MAX_WORD].lower())
            places.starts.append(match.start())
            places.ends.append(match.end())
            places.first_ends.append(match.end())
            continue
        folded = fold(piece)
        starts, ends = _origins(piece, folded, match.start())
        for found in token_pattern().finditer(folded):
            run, word, symbol = found.groups()
            first, last = found.start(), found.end() - 1
            if run:
                tokens += (*pairs_of(run), run[-1])
                places.starts.extend(starts[first : last + 1])
                places.ends.extend((*ends[first + 1 : last + 1], ends[last]))
                places.first_ends.extend(ends[first : last + 1])
            else:
                tokens.append(word[:MAX_WORD] if word else symbol)
                places.starts.append(starts[first])
                places.ends.append(ends[last])
                places.first_ends.append(ends[last])
    return tokens, places


def _origins(piece: str, folded: str, offset: int) -> tuple[Sequence[int], Sequence[int]]:
    """Where in the text each folded character of a piece comes from: the starts, and the ends."""
    if folded == piece:
        return range(offset, offset + len(piece)), range(offset + 1, offset + len(piece) + 1)
    borders = [place for place, character in enumerate(piece) if not place or not _joins(character)]
    starts: list[int] = []
    ends: list[int] = []
    parts: list[str] = []
    for start, end in pairwise((*borders, len(piece))):
        part = fold(piece[start:end])
        parts.append(part)
        starts += [offset + start] * len(part)
        ends += [offset + end] * len(part)
    if "".join(parts) != folded:  # something joins that we did not expect to: then all of it is one
        return [offset] * len(folded), [offset + len(piece)] * len(folded)
    return starts, ends


def _joins(character: str) -> bool:
    """Whether this character makes one with those before it."""
    return category(character)[0] == "M" or character in "\uff9e\uff9f" or "\u1160" <= character <= "\u11ff"
