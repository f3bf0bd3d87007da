"""Cutting texts into words, beside the event loop, and a piece ahead of whoever needs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from statestore.engines.columns import kind_of_column
from statestore.engines.postgres.lexemes import indexed_form
from statestore.searching import TITLE_SEQ, text_to_index

BYTES_A_PIECE: Final = 100_000
"""How many bytes are cut into words while the server is busy with those before them."""

LITTLE: Final = 20_000
"""How many bytes are cut into words in the event loop itself; more would hold everybody up."""


class Text(NamedTuple):
    """What is to be cut into words: a record's body, or a title."""

    id: str
    number: int
    seq: int
    column: int
    body: bytes


class Words(NamedTuple):
    """What is to be added to the index."""

    id: str
    number: int
    seq: int
    lexemes: str
    line: str | None


async def words_of(texts: Iterable[Text], wanted: Sequence[str] = ()) -> AsyncGenerator[list[Words]]:
    """The words of some texts, piece by piece, and only of those that have all that is wanted.

    Whoever asks for a piece has the next one cut meanwhile.
    """
    pieces = _pieces(texts)
    cutting = _begun(pieces, wanted)
    try:
        while cutting is not None:
            words = await cutting
            cutting = _begun(pieces, wanted)
            if words:
                yield words
    finally:
        if cutting is not None:
            cutting.cancel()


def _pieces(texts: Iterable[Text]) -> Iterator[list[Text]]:
    piece: list[Text] = []
    room = BYTES_A_PIECE
    for text in texts:
        piece.append(text)
        room -= len(text.body)
        if room <= 0:
            yield piece
            piece, room = [], BYTES_A_PIECE
    if piece:
        yield piece


def _begun(pieces: Iterator[Sequence[Text]], wanted: Sequence[str]) -> asyncio.Task[list[Words]] | None:
    """Cutting the next piece into words, if there is one."""
    piece = next(pieces, None)
    return None if piece is None else asyncio.create_task(_cut(piece, wanted), name="statestore-cutting")


async def _cut(texts: Sequence[Text], wanted: Sequence[str]) -> list[Words]:
    if sum(len(text.body) for text in texts) > LITTLE:
        return await asyncio.to_thread(_words, texts, wanted)
    return _words(texts, wanted)


def _words(texts: Sequence[Text], wanted: Sequence[str]) -> list[Words]:
    words: list[Words] = []
    for session_id, number, seq, column, body in texts:
        text = body.decode(errors="replace") if seq == TITLE_SEQ else text_to_index(kind_of_column(column), body)
        form = indexed_form(text, wanted)
        if form is not None:
            words.append(Words(session_id, number, seq, *form))
    return words
