"""One order for everything that was said: records of three lists, stored and new, as they follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from statestore.records import Record, kind_of


class TimelineEntry(NamedTuple):
    """A record and its place: ``seq`` is its number in the session, ``None`` while it is not saved."""

    seq: int | None
    kind: str
    record: Record


class Column(NamedTuple):
    """One of a session's lists: what it holds now, what the store has of it, and the numbers of that."""

    now: Sequence[Record]
    stored: Sequence[Record]
    seqs: Sequence[int]


def first_changed_seq(columns: Sequence[Column]) -> int | None:
    """The lowest number of a stored record that was removed, replaced or moved; ``None`` if none was."""
    changed = (_first_difference(column) for column in columns)
    return min((seq for seq in changed if seq is not None), default=None)


def _first_difference(column: Column) -> int | None:
    for index, record in enumerate(column.stored):
        if index >= len(column.now) or column.now[index] is not record:
            return column.seqs[index]
    return None


def in_order(columns: Sequence[Column], pending: Sequence[Record], since: int = 0) -> list[TimelineEntry]:
    """Everything the lists hold now, but for the stored records numbered below ``since``.

    Stored records follow their numbers. New ones follow the record before them in their list, or come last, in
    the order of ``pending``, if they were appended. Within a list, order is the list's own.
    """
    ranks = {id(record): rank for rank, record in enumerate(pending)}
    placed: list[tuple[tuple[float, int], TimelineEntry]] = []
    for column in columns:
        numbers = {id(record): seq for record, seq in zip(column.stored, column.seqs, strict=True)}
        skipped = sum(1 for seq in column.seqs if seq < since)
        place: tuple[float, int] = (0, 0)
        for record in column.now[skipped:]:
            seq = numbers.get(id(record))
            if seq is not None:
                wanted: tuple[float, int] = (seq, -1)
            elif id(record) in ranks:
                wanted = (float("inf"), ranks[id(record)])
            else:
                wanted = place
            place = max(place, wanted)
            placed.append((place, TimelineEntry(seq, kind_of(record), record)))
    placed.sort(key=lambda item: item[0])
    return [entry for _, entry in placed]
