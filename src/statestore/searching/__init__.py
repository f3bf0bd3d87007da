r"""What can be searched for and what is found: one query language and one tokenizer, whatever the engine.

A token is a word without case and accents. Text that is written without spaces (東京都) has no words that could be
told apart, so it becomes overlapping pairs of characters and the last character alone: 東京 京都 都. A query for
several of these characters is the phrase of their pairs, one for a single character is a prefix, and so any part of
such a text is found, exactly.

An index that breaks text at everything but ASCII letters, ASCII digits and non-ASCII characters, as FTS5 does with
``tokenize='ascii'``, sees the tokens of `index_text` and no others.
"""

from __future__ import annotations

from statestore.searching.queries import MAX_QUERY, match_expression, parse_query
from statestore.searching.snippets import Snippet, snippet_of
from statestore.searching.texts import TITLE, TITLE_SEQ, text_in, text_to_index
from statestore.searching.tokens import MAX_WORD, RULES, index_text, tokens_of

__all__ = [
    "MAX_QUERY",
    "MAX_WORD",
    "RULES",
    "TITLE",
    "TITLE_SEQ",
    "Snippet",
    "index_text",
    "match_expression",
    "parse_query",
    "snippet_of",
    "text_in",
    "text_to_index",
    "tokens_of",
]
