r"""What can be searched for and what is found: one query language and one tokenizer, whatever the engine.

A token is a word without case and accents. Text that is written without spaces (東京都) has no words that could be
told apart, so it becomes overlapping pairs of characters and the last character alone: 東京 京都 都. A query for
several of these characters is the phrase of their pairs, one for a single character is a prefix, and so any part of
such a text is found, exactly.

An index that breaks text at everything but ASCII letters, ASCII digits and non-ASCII characters, as FTS5 does with
``tokenize='ascii'``, sees the tokens of `index_text` and no others.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from operator import add
from typing import Any, Final, NamedTuple, cast
from unicodedata import category, combining, normalize

import msgspec
from msgspec import Struct

from statestore.records import AGENT, USER
from statestore.terms import Term

RULES: Final = 1
"""Counts up whenever text is cut into other tokens than before: an index that was made by other rules is made anew."""

MAX_WORD: Final = 64
"""Of a longer word, such as base64, the first characters are indexed and searched for."""

MAX_QUERY: Final = 500
"""How many tokens of a query are searched for."""


class Snippet(Struct, frozen=True):
    """A piece of a text, and where in it something was found: ``[start, end)`` each, in order, apart."""

    text: str
    marks: tuple[tuple[int, int], ...]


# Scripts without spaces between words; Hangul, which has some, is searched in the same way.
_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u0e81-\u0eff"  # Lao
    "\u1000-\u1049\u1050-\u109d\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"  # Myanmar
    "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"  # Khmer
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"  # Hangul
    "\u3031-\u3035\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Kana
    "\U0001aff0-\U0001b16f"  # Kana, historic
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Han
)

# Marks that are part of a word, which Python's \w is not told of. Letters and unassigned places between them are in.
_MARKS: Final = (
    "\u0483-\u0487\ua66f\ua674-\ua67d\ua69e-\ua6f1"  # Cyrillic, Bamum
    "\u0610-\u061a\u0653-\u065f\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0898-\u08e1"  # Arabic
    "\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b"  # Syriac, Thaana, N'Ko, Samaritan, Mandaic
    "\u08e3-\u0963\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63"  # Devanagari to Oriya
    "\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57-\u0d63\u0d81-\u0df3"  # Tamil to Sinhala
    "\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6"  # Tibetan
    "\u135d-\u135f\u1712-\u1734\u1752-\u1773\u1885-\u193b\u1a17-\u1a1b\u1a55-\u1a7f"  # Ethiopic to Tai Tham
    "\u1b00-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1cff"  # Balinese to Vedic
    "\u2cef-\u2cf1\u2d7f-\u2dff\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d"  # Coptic to Kayah Li
    "\ua947-\ua953\ua980-\ua9c0\uaa29-\uaa4d\uaab0-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabea\uabec\uabed\ufb1e"
    "\U000101fd-\U0001037a\U00010a01-\U00010a3f\U00010ae5\U00010ae6\U00010d24-\U00010eac\U00010f46-\U00010f50"
    "\U00010f82-\U00010f85\U00011000-\U00011046\U00011070-\U000110ba\U000110c2\U00011100-\U00011134"
    "\U00011145-\U00011173\U00011180-\U000111c0\U000111c9-\U000111cc\U000111ce\U000111cf\U0001122c-\U00011237"
    "\U0001123e\U000112df-\U00011446\U0001145e-\U000114c3\U000115af-\U000115c0\U000115dc-\U00011640"
    "\U000116ab-\U000116b7\U0001171d-\U0001172b\U0001182c-\U0001183a\U00011930-\U00011943\U000119d1-\U000119e0"
    "\U000119e4-\U00011a3e\U00011a47-\U00011a99\U00011c2f-\U00011c3f\U00011c92-\U00011ef6\U00016af0-\U00016af4"
    "\U00016b30-\U00016b36\U00016f4f-\U00016f92\U00016fe4-\U00016ff1\U0001e000-\U0001e136\U0001e2ae-\U0001e2ef"
    "\U0001e8d0-\U0001e94a"
)

# What makes no difference: accents, the vowel points of Hebrew and Arabic, and characters that cannot be seen.
_DROPPED: Final = re.compile(
    "["
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u302a-\u302f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
    "]+"
)

_SYMBOL: Final = "\u231a\u231b\u23e9-\u23fa\u2600-\u27bf\u2b1b\u2b1c\u2b50\u2b55\U0001f000-\U0001faff"
_LETTER: Final = rf"[^\W_{_UNSPACED}]"
_ASCII_WORD: Final = re.compile(r"[0-9a-z]+")


@cache  # compiled when it is needed: that takes 5 ms
def _token() -> re.Pattern[str]:
    """What a token is cut from: a run of characters without spaces, a word, or a symbol."""
    return re.compile(rf"([{_UNSPACED}]+)|((?:{_LETTER}++[{_MARKS}]*+)++)|([{_SYMBOL}])")


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, in order."""
    folded = _folded(text)
    if folded.isascii():
        return [word[:MAX_WORD] for word in _ASCII_WORD.findall(folded)]
    tokens: list[str] = []
    for run, word, symbol in _token().findall(folded):
        if run:
            tokens += _pairs(run)
            tokens.append(run[-1])
        else:
            tokens.append(word[:MAX_WORD] or symbol)
    return tokens


# From separator to separator, each the last within 65 characters: where that fails, a word is too long.
_HAS_LONG_WORD: Final = re.compile(rf"(?s)(?:.{{0,{MAX_WORD}}}[^0-9A-Za-z])*+[0-9A-Za-z]{{{MAX_WORD + 1}}}")


def index_text(text: str) -> str:
    """The text to hand to an index that breaks it at ASCII punctuation and folds ASCII letters."""
    if text.isascii() and not _HAS_LONG_WORD.match(text):
        return text
    return " ".join(tokens_of(text))


def _pairs(run: str) -> Iterable[str]:
    return map(add, run, run[1:])


def _folded(text: str) -> str:
    """The text without what makes no difference to a search."""
    if text.isascii():
        return text.lower()
    text = _MARK_RUN.sub(_few_marks, text)
    apart = normalize("NFKD", text)
    kept = _DROPPED.sub("", apart)
    if kept == apart:  # then there was no need to take it apart, and not to do so is faster
        kept = normalize("NFKC", text)
    return normalize("NFKC", kept.casefold())


# Sorting a long run of marks takes quadratic time, and no script has more than a few on one letter.
_MAX_MARKS: Final = 30
_MARK_RUN: Final = re.compile(rf"[^\w\s\x00-\x7f]{{{_MAX_MARKS + 1},}}")


def _few_marks(match: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for character in match[0]:
        marks = marks + 1 if combining(character) else 0
        if marks <= _MAX_MARKS:
            kept.append(character)
    return "".join(kept)


_QUOTES: Final = '"\u201c\u201d\u201e\u00ab\u00bb\uff02'
_QUERY_PART: Final = re.compile(rf"[{_QUOTES}]([^{_QUOTES}]*)[{_QUOTES}](\*?)|([^\s{_QUOTES}]+)")


def parse_query(text: str) -> tuple[Term, ...]:
    """The terms of a query, all of which must occur; no text is wrong, and one without words has no terms.

    ``word``, ``"words that follow each other"``, and with ``*`` right behind either, what begins like it. Everything
    else is punctuation, a quote that is not closed too. What is typed without spaces belongs together: ``don't`` is
    the phrase *don t*.

    Of a very long query the first 500 tokens of different terms count: to FTS5 each costs memory, and many together
    quadratic time.
    """
    terms: dict[Term, None] = {}
    room = MAX_QUERY
    for part in _QUERY_PART.finditer(text):
        phrase, star, word = part.groups()
        if word is None:
            term = _term(phrase, is_prefix=bool(star))
        else:
            term = _term(word.rstrip("*"), is_prefix=word.endswith("*"))
        if term is None or term in terms:
            continue
        if len(term.tokens) > room:
            term = Term(term.tokens[:room])
        terms[term] = None
        room -= len(term.tokens)
        if not room:
            break
    return tuple(terms)


def _term(text: str, *, is_prefix: bool) -> Term | None:
    folded = _folded(text)
    if folded.isascii():
        words = [word[:MAX_WORD] for word in _ASCII_WORD.findall(folded)]
        return Term(tuple(words), is_prefix and folded[-1].isalnum()) if words else None
    matches = list(_token().finditer(folded))
    if not matches:
        return None
    last = matches.pop()
    tokens: list[str] = []
    for match in matches:  # a run that something follows has to end there: with its last character alone
        run, word, symbol = match.groups()
        if run:
            tokens += _pairs(run)
        tokens.append(run[-1] if run else word[:MAX_WORD] if word else symbol)
    run, word, symbol = last.groups()
    if run and len(run) > 1:
        return Term((*tokens, *_pairs(run)))
    if run:
        return Term((*tokens, run), is_prefix=True)
    if word:
        return Term((*tokens, word[:MAX_WORD]), is_prefix and last.end() == len(folded))
    return Term((*tokens, symbol))


def match_expression(terms: Sequence[Term]) -> str:
    """FTS5's spelling of a query; without terms, one that nothing matches."""
    spelt = (f'"{" ".join(term.tokens)}"' + (" *" if term.is_prefix else "") for term in terms)
    return " AND ".join(spelt) or '""'


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
        folded = _folded(piece)
        starts, ends = _origins(piece, folded, match.start())
        for found in _token().finditer(folded):
            run, word, symbol = found.groups()
            first, last = found.start(), found.end() - 1
            if run:
                tokens += (*_pairs(run), run[-1])
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
        part = _folded(piece[start:end])
        parts.append(part)
        starts += [offset + start] * len(part)
        ends += [offset + end] * len(part)
    if "".join(parts) != folded:  # something joins that we did not expect to: then all of it is one
        return [offset] * len(folded), [offset + len(piece)] * len(folded)
    return starts, ends


def _joins(character: str) -> bool:
    """Whether this character makes one with those before it."""
    return category(character)[0] == "M" or character in "\uff9e\uff9f" or "\u1160" <= character <= "\u11ff"


class _Said(Struct):
    content: str


class _Happened(Struct):
    data: Any = None


_decode_said = msgspec.json.Decoder(_Said).decode
_decode_happened = msgspec.json.Decoder(_Happened).decode


def text_in(kind: str, body: bytes) -> str:
    """The text of a record that can be searched: what was said, or all texts in an event's data, one per line."""
    try:
        if kind in (USER, AGENT):
            return _decode_said(body).content
        return "\n".join(_texts_in(_decode_happened(body).data))
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def _texts_in(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            waiting += reversed(cast("list[Any]", value))
        elif isinstance(value, dict):
            waiting += reversed(cast("dict[str, Any]", value).values())
