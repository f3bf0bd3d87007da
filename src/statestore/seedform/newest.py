"""The newest records of a session file, found from its end: a few of many cost little more than reading the file."""

from __future__ import annotations

import operator
from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Final

import msgspec

from statestore.records import RecordArrays
from statestore.seedform.notes import Columns, Notes, fitting_seqs, next_seq_of, numbering_of
from statestore.seedform.order import Column, Order
from statestore.timestamps import nanoseconds

_TIMESTAMP: Final = operator.attrgetter("timestamp_text")
_BEGINNINGS: Final = (b"\n    {", b"\n    {", b',{"kind":')
"""What a record of each list usually begins with, if it is not the first. The events stand in a compact text."""
_LEAP: Final = ":60"


def newest(arrays: RecordArrays, columns: Columns, notes: Notes, count: int) -> Order | None:
    """The order of so many records, the newest ones; ``None`` if it takes a look at all records to tell it."""
    counts = tuple(map(len, columns))
    if sum(counts) <= count or any(fitting_seqs(notes, counts)) or notes.keys:
        return None
    timestamps = [list(map(_TIMESTAMP, column)) for column in columns]
    left_out = _left_out(timestamps, count) if _sort_as_texts([*chain(*timestamps)]) else None
    if left_out is None:
        return None
    begun: list[Column] = []
    for text, beginning, out, total in zip(arrays, _BEGINNINGS, left_out, counts, strict=True):
        place = _place(bytes(text), beginning, out, total)
        begun.append(Column((), array("q", [place])))
    users, agents, events = begun
    tails = columns[0][left_out[0] :], columns[1][left_out[1] :], columns[2][left_out[2] :]
    try:
        # From where a brace is, the rest of an array reads as an array only if a record begins there.
        return Order((users, agents, events), {}, left_out).grown(
            arrays, numbering_of(Notes(next=next_seq_of(notes, left_out)), tails)
        )
    except (msgspec.DecodeError, ValueError):
        return None  # laid out otherwise than we would


def _left_out(timestamps: Sequence[list[str]], count: int) -> tuple[int, int, int] | None:
    """How many records of each list come before the newest ones; ``None`` if their moments do not tell."""
    moments = [[text[:-1] for text in column] for column in timestamps]
    last = sorted((moment, index) for index, column in enumerate(moments) for moment in column[-count:])[-count:]
    kept = Counter(index for _, index in last)
    users, agents, events = (len(column) - kept[index] for index, column in enumerate(moments))
    parts = list(zip(moments, (users, agents, events), strict=True))
    latest_out = max(max(column[:out]) for column, out in parts if out)
    first_kept = min(column[out] for column, out in parts if out < len(column))
    # If so, a list whose head is left out always comes before one whose head is kept.
    is_apart = nanoseconds(f"{latest_out}Z") < nanoseconds(f"{first_kept}Z")
    return (users, agents, events) if is_apart else None


def _sort_as_texts(timestamps: Sequence[str]) -> bool:
    """Whether all are in UTC and spelt alike, so that a text that sorts later, without its Z, is no earlier moment."""
    joined = "".join(timestamps)
    return joined.count("T") == joined.count("Z") == len(timestamps) and _LEAP not in joined


def _place(text: bytes, beginning: bytes, left_out: int, total: int) -> int:
    """Where in a JSON array the records begin that are not left out, if it is laid out as usual."""
    if not left_out:
        return len(b"[")
    place = text.rindex(b"}") + 1
    if left_out == total:
        return place
    for _ in range(total - left_out):
        place = max(text.rfind(beginning, 0, place), 0)
    return place + beginning.index(b"{")
