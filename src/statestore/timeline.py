"""One order for everything that was said: records of three lists, stored and new, as they follow each other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import is_, itemgetter
from typing import Any, NamedTuple, cast

from statestore.records import AGENT, USER, Record, column_of, kind_of


class TimelineEntry(NamedTuple):
    """A record and its place: ``seq`` is its number in the session, ``None`` while it is not saved."""

    seq: int | None
    kind: str
    record: Record


_entry: Callable[[tuple[int | None, str, Record]], TimelineEntry] = partial(cast("Any", tuple).__new__, TimelineEntry)
"""What ``TimelineEntry._make`` does, without a Python call for each entry: half of what a long timeline costs."""


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


class Placed(NamedTuple):
    """An entry of the timeline, and which of the pending records it is, if it is one."""

    entry: TimelineEntry
    pending: int | None


def placed(columns: Sequence[Column], pending: Sequence[Record], since: int = 0) -> list[Placed]:
    """Everything the lists hold now, in order, but for the stored records numbered below ``since``.

    Stored records follow their numbers. New ones follow the record before them in their list, or come last, in
    the order of ``pending``, if they were appended. Within a list, order is the list's own.
    """
    ranks = _places(pending, range(len(pending)))
    found: list[tuple[tuple[float, int], Placed]] = []
    for column in columns:
        numbers = _places(column.stored, column.seqs)
        skipped = sum(1 for seq in column.seqs if seq < since)
        for record in column.now[:skipped]:
            numbers[id(record)].pop()
        place: tuple[float, int] = (0, 0)
        for record in column.now[skipped:]:
            seq = _taken(numbers, record)
            rank = None if seq is not None else _taken(ranks, record)
            if seq is not None:
                place = max(place, (seq, -1))
            elif rank is not None:
                place = max(place, (float("inf"), rank))
            found.append((place, Placed(TimelineEntry(seq, kind_of(record), record), rank)))
    found.sort(key=lambda item: item[0])
    return [item for _, item in found]


def in_order(columns: Sequence[Column], pending: Sequence[Record]) -> list[TimelineEntry]:
    """Everything the lists hold now, as it follows each other."""
    if not _was_only_appended_to(columns, pending):
        return [item.entry for item in placed(columns, pending)]
    users, agents, events = columns
    entries = [
        *_entries(users, repeat(USER, len(users.stored))),
        *_entries(agents, repeat(AGENT, len(agents.stored))),
        *_entries(events, map(kind_of, events.stored)),
    ]
    entries.sort(key=itemgetter(0))
    entries += (TimelineEntry(None, kind_of(record), record) for record in pending)
    return entries


def _entries(column: Column, kinds: Iterable[str]) -> Iterator[TimelineEntry]:
    return map(_entry, zip(column.seqs, kinds, column.stored, strict=True))


def _was_only_appended_to(columns: Sequence[Column], pending: Sequence[Record]) -> bool:
    """Whether the lists are what the store has and then what is pending, each in its order."""
    expected = [list(column.stored) for column in columns]
    for record in pending:
        expected[column_of(kind_of(record))].append(record)
    return all(
        len(column.now) == len(records) and all(map(is_, column.now, records))
        for column, records in zip(columns, expected, strict=True)
    )


def _places(records: Sequence[Record], places: Sequence[int]) -> dict[int, list[int]]:
    """Where each record stands, by its identity; one that was said twice has two places, the first one last."""
    found: dict[int, list[int]] = {}
    for record, place in zip(reversed(records), reversed(places), strict=True):
        found.setdefault(id(record), []).append(place)
    return found


def _taken(places: dict[int, list[int]], record: Record) -> int | None:
    left = places.get(id(record))
    return left.pop() if left else None
