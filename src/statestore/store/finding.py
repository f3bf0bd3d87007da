"""After a save that nobody knows the outcome of: what was sent, found again among what is stored."""

from __future__ import annotations

from collections.abc import Container, Sequence

from statestore.engine import NewRecord
from statestore.records import said_in
from statestore.stored import StoredRecord


def numbers_of(
    sent: Sequence[NewRecord], found: Sequence[StoredRecord], had: Container[tuple[int, bytes]]
) -> list[int | None]:
    """The number of each record that was sent, ``None`` if it is not there.

    It is found by its key or, in order, by what it says, among the records that were not there before: these are
    known by number and body, because numbers begin again where a session is stored anew.
    """
    by_key = {record.key: record.seq for record in found if record.key is not None}
    new = [(record.seq, said_in(record.kind, record.body)) for record in found if (record.seq, record.body) not in had]
    place = 0
    numbers: list[int | None] = []
    for record in sent:
        number = by_key.get(record.key) if record.key is not None else None
        if number is None:
            said = said_in(record.kind, record.body)
            for later in range(place, len(new)):
                if new[later][1] == said:
                    number, place = new[later][0], later + 1
                    break
        numbers.append(number)
    return numbers


def as_given(numbers: Sequence[int | None], known: int) -> tuple[int, ...]:
    """The numbers that a save gave out, also to what somebody else removed since: each follows the one before it."""
    given: list[int] = []
    last = known
    for number in numbers:
        last = last + 1 if number is None else max(last, number)
        given.append(last if number is None else number)
    return tuple(given)
