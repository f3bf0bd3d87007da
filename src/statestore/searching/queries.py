"""The query language: words, phrases, prefixes; any text at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from statestore.searching.tokens import ASCII_WORD, MAX_WORD, fold, pairs_of, token_pattern
from statestore.terms import Term

MAX_QUERY: Final = 500
"""How many tokens of a query are searched for."""

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
    folded = fold(text)
    if folded.isascii():
        words = [word[:MAX_WORD] for word in ASCII_WORD.findall(folded)]
        return Term(tuple(words), is_prefix and folded[-1].isalnum()) if words else None
    matches = list(token_pattern().finditer(folded))
    if not matches:
        return None
    last = matches.pop()
    tokens: list[str] = []
    for match in matches:  # a run that something follows has to end there: with its last character alone
        run, word, symbol = match.groups()
        if run:
            tokens += pairs_of(run)
        tokens.append(run[-1] if run else word[:MAX_WORD] if word else symbol)
    run, word, symbol = last.groups()
    if run and len(run) > 1:
        return Term((*tokens, *pairs_of(run)))
    if run:
        return Term((*tokens, run), is_prefix=True)
    if word:
        return Term((*tokens, word[:MAX_WORD]), is_prefix and last.end() == len(folded))
    return Term((*tokens, symbol))


def match_expression(terms: Sequence[Term]) -> str:
    """FTS5's spelling of a query; without terms, one that nothing matches."""
    spelt = (f'"{" ".join(term.tokens)}"' + (" *" if term.is_prefix else "") for term in terms)
    return " AND ".join(spelt) or '""'
