"""The tokenizer: a token is a word without case and accents, or a pair of characters of a text without spaces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from operator import add
from typing import Final
from unicodedata import combining, normalize

from statestore.searching.scripts import MARKS, SYMBOL, UNSPACED

RULES: Final = 1
"""Counts up whenever text is cut into other tokens than before: an index that was made by other rules is made anew."""

MAX_WORD: Final = 64
"""Of a longer word, such as base64, the first characters are indexed and searched for."""

# What makes no difference: accents, the vowel points of Hebrew and Arabic, and characters that cannot be seen.
_DROPPED: Final = re.compile(
    "["
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f\u302a-\u302f"
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670"
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e0fff"
    "]+"
)

_LETTER: Final = rf"[^\W_{UNSPACED}]"
ASCII_WORD: Final = re.compile(r"[0-9a-z]+")


@cache  # compiled when it is needed: that takes 5 ms
def token_pattern() -> re.Pattern[str]:
    """What a token is cut from: a run of characters without spaces, a word, or a symbol."""
    return re.compile(rf"([{UNSPACED}]+)|((?:{_LETTER}++[{MARKS}]*+)++)|([{SYMBOL}])")


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, in order."""
    folded = fold(text)
    if folded.isascii():
        return [word[:MAX_WORD] for word in ASCII_WORD.findall(folded)]
    tokens: list[str] = []
    for run, word, symbol in token_pattern().findall(folded):
        if run:
            tokens += pairs_of(run)
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


def pairs_of(run: str) -> Iterable[str]:
    """The overlapping pairs of characters in a run."""
    return map(add, run, run[1:])


def fold(text: str) -> str:
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
